// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"crypto/sha512"
	"fmt"
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

// schemas is the index of all versions. A real server publishes a change up to
// a second after it applies it; this one at once, or later by
// PublishSchemasAfter.
func (s *Server) schemas() schemaIndex {
	index := schemaIndex{Paths: map[string]schemaDocument{}}
	for _, g := range s.groups() {
		for _, v := range g.versions {
			index.Paths[strings.TrimPrefix(v.path(), "/")] = schemaDocument{URL: v.documentURL()}
		}
	}
	return index
}

func (v servedVersion) documentURL() string { return "/openapi/v3" + v.path() + "?hash=" + v.hash() }

// hash changes with what is published of the kinds.
func (v servedVersion) hash() string {
	sum := sha512.New()
	fmt.Fprintln(sum, v.path())
	for _, k := range v.kinds {
		fmt.Fprintln(sum, k.Resource, k.Kind, k.Namespaced, k.builtin, k.verbs, k.published(time.Now()), k.digest())
		for _, sub := range k.subresources {
			fmt.Fprintln(sum, sub.name, sub.kind, sub.verbs)
		}
	}
	return fmt.Sprintf("%X", sum.Sum(nil))
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
		s.installLocked(kind.family.with(&changed))
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
		kind.oldest = s.mu.log.Revision
	}
}
