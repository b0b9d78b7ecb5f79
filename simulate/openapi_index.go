// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemaLife is what has happened to the schema of a kind.
type schemaLife struct {
	changes int       // how often it has changed
	publish time.Time // when the last change is published
	oldest  int64     // where the history for watches begins, if after the server's
}

// published counts the changes that are known at now.
func (l schemaLife) published(now time.Time) int {
	if now.Before(l.publish) {
		return l.changes - 1
	}
	return l.changes
}

// schemaIndex is where a server says which OpenAPI documents it has, each with
// the hash of its content.
type schemaIndex struct {
	Paths map[string]schemaDocument `json:"paths"`
}

type schemaDocument struct {
	URL string `json:"serverRelativeURL"`
}

// tellSchemas answers which documents there are.
func (s *Server) tellSchemas(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "/openapi/v3":
	case strings.HasPrefix(path, "/openapi/v3/"):
		w.WriteHeader(http.StatusNotFound)
		return
	default:
		absent(w)
		return
	}
	index, err := s.schemas()
	if err != nil {
		refuse(w, encoder{}, err)
		return
	}
	body, err := json.Marshal(index)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	respond(w, encoder{}, http.StatusOK, body)
}

// schemas is the index of all group-versions. A real server publishes a change
// up to a second after it applies it; this one at once, or later by
// PublishSchemasAfter.
func (s *Server) schemas() (schemaIndex, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.faults.noSchemas {
		return schemaIndex{}, errForbiddenPath(s.user, "/openapi/v3")
	}
	index := schemaIndex{Paths: map[string]schemaDocument{}}
	changes := map[string]int{}
	for _, k := range s.mu.kinds {
		changes[k.path()] += 1000 + k.published(time.Now())
	}
	for path, n := range changes {
		index.Paths[strings.TrimPrefix(path, "/")] = schemaDocument{URL: fmt.Sprintf("/openapi/v3%s?hash=%08X", path, n)}
	}
	return index, nil
}

// Upgrade makes the server one of another version, with other defaults of some
// kinds, and ends all watches.
func (s *Server) Upgrade(version string, defaults map[schema.GroupResource]map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version = version
	for r, values := range defaults {
		kind := s.storedLocked(r)
		if kind == nil {
			return fmt.Errorf("upgrade to %s: %s is not served", version, r)
		}
		changed := *kind
		changed.Defaults = values
		changed.changes++
		s.installLocked(familyOf(&changed))
	}
	s.eachWatchLocked(func(w *watch) { w.over = true })
	return nil
}

// ForgetHistory forgets what watches of one kind are served from, as a real
// server does when the schema of a custom kind changes.
func (s *Server) ForgetHistory(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind := s.storedLocked(r); kind != nil {
		kind.oldest = s.mu.log.revision
	}
}
