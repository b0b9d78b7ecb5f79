// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// freshWithin is how long a request for a version that is not reached waits.
const freshWithin = 3 * time.Second

// page is which part of which state a list asks for.
type page struct {
	revisions.Span
	limit    int   // 0: all
	revision int64 // 0: none given
	exact    bool  // that revision and no other
	newest   bool  // the state of the store, not of the cache
	follows  bool  // another page
}

func (c *call) page(opts *internalversion.ListOptions) (page, error) {
	p := page{Span: revisions.SpanOf(c.namespace, ""), limit: int(max(opts.Limit, 0))}
	name, single := "", false
	if opts.FieldSelector != nil && (c.namespace != "" || !c.kind.Namespaced) {
		name, single = opts.FieldSelector.RequiresExactMatch("metadata.name")
	}
	if single { // which needs no pages
		p.limit, p.Span = 0, revisions.SpanOfOne(types.NamespacedName{Namespace: c.namespace, Name: name})
	} else if opts.Continue != "" {
		return p.following(c, opts)
	}
	var err error
	if p.revision, err = parseRevision(opts.ResourceVersion); err != nil {
		return p, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	match := opts.ResourceVersionMatch
	p.newest = opts.ResourceVersion == ""
	p.exact = match == metav1.ResourceVersionMatchExact || match == "" && p.limit > 0 && p.revision > 0
	if opts.ResourceVersion == "0" {
		p.limit = 0 // the cache gives all it has
	}
	return p, nil
}

// following is the page that a continue token leads to.
func (p page) following(c *call, opts *internalversion.ListOptions) (page, error) {
	revision, start, err := parseContinue(opts.Continue)
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return p, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	p.follows, p.Span = true, revisions.SpanOf(c.namespace, start)
	if opts.ResourceVersion == "0" {
		p.limit = 0
	}
	if revision > 0 {
		p.revision, p.exact = revision, true
	}
	return p, nil
}

func parseRevision(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, refusal.Plain(fmt.Errorf("resourceVersion: Invalid value: %q: %w", text, err))
	}
	return int64(min(n, math.MaxInt64)), nil
}

func (s *Server) list(w http.ResponseWriter, c *call) error {
	opts, err := c.listOptions()
	if err != nil {
		return err
	}
	p, err := c.page(opts)
	if err != nil {
		return err
	}
	objects, meta, err := s.selected(c, p, c.selection(opts))
	if err != nil {
		return err
	}
	if err := s.kept(c.Context()); err != nil {
		return err
	}
	if spoil := s.spoilage(c); spoil != "" {
		body, err := c.encoder.List(meta, objects)
		if err == nil {
			spoilBody(w, c.encoder, spoil, body)
		}
		return err
	}
	out := &encode.Parts{ResponseWriter: w, Encoder: c.encoder, Request: c.Request}
	if err := c.encoder.EachPart(meta, objects, out.Send); err != nil {
		if out.Out != nil {
			panic(http.ErrAbortHandler) // it cannot be taken back
		}
		return err
	}
	out.End()
	return nil
}

// selected are the objects of one page, and where the next begins.
func (s *Server) selected(c *call, p page, sel selection) ([]*object.Object, metav1.ListMeta, error) {
	most := p.limit
	if !sel.all() {
		most = 0
	}
	objects, count, revision, err := s.state(c, p, most)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	taken, last := objects, len(objects)
	if !sel.all() {
		sel.asks = true // nobody waits for the server meanwhile
		taken, last = sel.first(objects, p.limit)
	}
	if p.limit > 0 && len(taken) == p.limit && last < count {
		meta.Continue = continueAfter(c.namespace, taken[p.limit-1].Key(), revision)
		if sel.all() {
			meta.RemainingItemCount = new(int64(count - p.limit))
		}
	}
	return taken, meta, nil
}

// state is the objects of the kind that p asks for, at most so many if not 0;
// how many there are, and at which revision they were so.
func (s *Server) state(c *call, p page, most int) (objects []*object.Object, count int, revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compactLocked()
	if p.follows && s.mu.faults.expireContinue > 0 && !c.sound() {
		s.mu.faults.expireContinue--
		return nil, 0, 0, errContinueTooOld(c.namespace, p.From)
	}
	known := func() int64 { return s.shownOfLocked(c.kind.Held()) }
	if p.newest || p.follows {
		known = func() int64 { return s.mu.log.Revision }
	}
	if !s.waitLocked(c.Context(), freshWithin, func() bool { return known() >= p.revision }) {
		return nil, 0, 0, refusal.TooLarge(p.revision, known())
	}
	if revision = known(); p.exact {
		revision = p.revision
	}
	then, ok := s.mu.log.At(c.kind.Held(), revision)
	switch {
	case !ok && p.follows:
		return nil, 0, 0, errContinueTooOld(c.namespace, p.From)
	case !ok && p.exact:
		return nil, 0, 0, refusal.ListTooOld()
	case !ok:
		return nil, 0, 0, refusal.TooOld(revision, s.mu.log.Compacted)
	}
	count = then.Count(p.Span)
	if most == 0 {
		most = count
	}
	objects = then.Take(p.Span, min(most, count))
	if c.sound() {
		for i, obj := range objects {
			objects[i] = s.seenLocked(c, obj)
		}
	}
	return objects, count, revision, nil
}

func (s *Server) get(w http.ResponseWriter, c *call) error {
	revision, err := parseRevision(c.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	obj, err := s.find(c, revision)
	if err == nil {
		err = s.kept(c.Context())
	}
	if err != nil {
		return err
	}
	body, err := c.encoder.Object(obj)
	if err != nil {
		return err
	}
	encode.Respond(w, c.encoder, http.StatusOK, body)
	return nil
}

func (s *Server) find(c *call, revision int64) (*object.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waitLocked(c.Context(), freshWithin, func() bool { return s.mu.log.Revision >= revision }) {
		return nil, refusal.TooLarge(revision, s.mu.log.Revision)
	}
	obj := s.mu.log.Get(c.kind.Held(), types.NamespacedName{Namespace: c.namespace, Name: c.name})
	if obj == nil {
		return nil, apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	return s.seenLocked(c, obj), nil
}
