// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// freshWithin is how long a request for a version that is not reached waits.
const freshWithin = 3 * time.Second

// page is which part of which state a list asks for.
type page struct {
	limit    int
	revision int64 // 0: none given
	exact    bool  // that revision and no other
	newest   bool  // the state of the store, not of the cache
	start    string
}

// continueToken is what a client gives back to get the next page.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

func (t continueToken) encode() string {
	text, _ := json.Marshal(t) // of a string and two plain values
	return base64.RawURLEncoding.EncodeToString(text)
}

// parsePage reads limit, continue, resourceVersion and resourceVersionMatch.
func parsePage(c *call) (p page, err error) {
	q := c.URL.Query()
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil {
			return p, apierrors.NewBadRequest(fmt.Sprintf("strconv.ParseInt: parsing %q: invalid syntax", text))
		}
	}
	version, match := q.Get("resourceVersion"), q.Get("resourceVersionMatch")
	if p.revision, err = parseRevision(version); err != nil {
		return p, err
	}
	if token := q.Get("continue"); token != "" {
		return p.following(token, version, match)
	}
	switch {
	case match != "" && version == "":
		return p, errInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match == "Exact" && p.revision == 0:
		return p, errInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", "resourceVersionMatch", "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
	case match != "" && match != "Exact" && match != "NotOlderThan":
		return p, errInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", "resourceVersionMatch", fmt.Sprintf("Unsupported value: %q", match))
	}
	p.newest = version == ""
	p.exact = match == "Exact" || match == "" && p.limit > 0 && p.revision > 0
	if version == "0" {
		p.limit = 0 // the cache gives all it has
	}
	return p, nil
}

func (p page) following(token, version, match string) (page, error) {
	if version != "" && version != "0" || match != "" {
		return p, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	var t continueToken
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil || t.Version != "meta.k8s.io/v1" || t.Revision <= 0 {
		return p, apierrors.NewBadRequest("continue key is not valid")
	}
	p.revision, p.exact, p.start = t.Revision, true, t.Start
	return p, nil
}

func parseRevision(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: strconv.ParseUint: parsing %q: invalid syntax", text, text))
	}
	return int64(n), nil
}

func (s *Server) list(w http.ResponseWriter, c *call) error {
	p, err := parsePage(c)
	if err != nil {
		return err
	}
	sel, err := parseSelection(c.kind, c.namespace, c.URL.Query())
	if err != nil {
		return err
	}
	objects, revision, err := s.state(c, p)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *object) bool { return !sel.has(o) || storeKey(o.key()) < p.start })
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	if left := len(objects) - p.limit; p.limit > 0 && left > 0 {
		objects = objects[:p.limit]
		last := storeKey(objects[p.limit-1].key())
		meta.Continue = continueToken{"meta.k8s.io/v1", revision, last + "\x00"}.encode()
		if sel.labels.Empty() && sel.fields.Empty() {
			meta.RemainingItemCount = new(int64(left))
		}
	}
	body, err := c.encoder.list(meta, objects)
	if err != nil {
		return err
	}
	if spoil := s.spoilage(c.kind.resource()); spoil != "" {
		spoilBody(w, c.encoder, spoil, body)
		return nil
	}
	respond(w, c.encoder, http.StatusOK, body)
	return nil
}

// storeKey orders keys as the store does.
func storeKey(key types.NamespacedName) string {
	return "/" + strings.TrimPrefix(key.String(), "/")
}

// state is the objects of the kind that p asks for, and at which revision they
// were so.
func (s *Server) state(c *call, p page) ([]*object, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.start != "" && s.mu.faults.expireContinue > 0 {
		s.mu.faults.expireContinue--
		return nil, 0, errContinueTooOld()
	}
	known := s.shownLocked
	if p.newest || p.start != "" {
		known = func() int64 { return s.mu.log.revision }
	}
	if !s.waitLocked(c.Context(), freshWithin, func() bool { return known() >= p.revision }) {
		return nil, 0, errTooLarge(p.revision, known())
	}
	revision := known()
	if p.exact {
		revision = p.revision
	}
	objects, ok := s.mu.log.list(c.kind.resource(), revision)
	switch {
	case !ok && p.start != "":
		return nil, 0, errContinueTooOld()
	case !ok:
		return nil, 0, errTooOld(revision, s.mu.log.compacted)
	}
	return objects, revision, nil
}

func (s *Server) get(w http.ResponseWriter, c *call) error {
	revision, err := parseRevision(c.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	obj, err := s.find(c, revision)
	if err != nil {
		return err
	}
	body, err := c.encoder.object(obj)
	if err != nil {
		return err
	}
	respond(w, c.encoder, http.StatusOK, body)
	return nil
}

func (s *Server) find(c *call, revision int64) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waitLocked(c.Context(), freshWithin, func() bool { return s.mu.log.revision >= revision }) {
		return nil, errTooLarge(revision, s.mu.log.revision)
	}
	obj := s.mu.log.get(c.kind.resource(), types.NamespacedName{Namespace: c.namespace, Name: c.name})
	if obj == nil {
		return nil, apierrors.NewNotFound(c.kind.resource(), c.name)
	}
	return obj, nil
}
