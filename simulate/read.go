// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/queries"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/serve"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// query reads the query of a list, a watch or a deletion of a collection.
func (c *call) query() (*queries.Query, error) {
	return queries.Parse(queries.Target{Kind: c.kind, Namespace: c.namespace, Name: c.name}, c.URL.Query(), c.verb == "watch")
}

func (s *Server) list(w http.ResponseWriter, c *call) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	p, err := query.Page()
	if err != nil {
		return err
	}
	objects, meta, err := s.selected(c, p, query.Selection())
	if err != nil {
		return err
	}
	if err := s.store.Kept(c.Context()); err != nil {
		return err
	}
	if damage := s.listDamage(c); damage != "" {
		body, err := c.encoder.List(meta, objects)
		if err == nil {
			damage.Answer(w, c.encoder, body)
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

// listDamage returns how the answer to a list or a watch is damaged; empty if it is not.
func (s *Server) listDamage(c *call) faults.Damage {
	if c.sound() {
		return ""
	}
	return s.requests.ListDamage(c.kind.GroupResource())
}

// selected are the objects of one page, and where the next begins.
func (s *Server) selected(c *call, p queries.Page, sel queries.Selection) ([]*object.Object, metav1.ListMeta, error) {
	most := p.Limit
	if !sel.All() {
		most = 0
	}
	objects, count, revision, err := s.state(c, p, most)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	taken, last := objects, len(objects)
	if !sel.All() {
		sel.Converts = true // the server is not locked
		taken, last = sel.First(objects, p.Limit)
	}
	if p.Limit > 0 && len(taken) == p.Limit && last < count {
		meta.Continue = queries.ContinueAfter(c.namespace, taken[p.Limit-1].Key(), revision)
		if sel.All() {
			meta.RemainingItemCount = new(int64(count - p.Limit))
		}
	}
	return taken, meta, nil
}

// state is the objects of the kind that p asks for, at most so many if not 0;
// how many there are, and at which revision they were so.
func (s *Server) state(c *call, p queries.Page, most int) (objects []*object.Object, count int, revision int64, err error) {
	tx := s.store.Begin()
	defer tx.End()
	tx.CompactIfDue()
	if p.Follows && !c.sound() && s.requests.ContinueExpired() {
		return nil, 0, 0, queries.ContinueTooOld(c.namespace, p.From)
	}
	known := func() int64 { return tx.Shown(c.kind.Held()) }
	if p.Newest || p.Follows {
		known = tx.Revision
	}
	if !tx.Wait(c.Context(), store.FreshWithin, func() bool { return known() >= p.Revision }) {
		return nil, 0, 0, refusal.TooLarge(p.Revision, known())
	}
	if revision = known(); p.Exact {
		revision = p.Revision
	}
	then, ok := tx.At(c.kind.Held(), revision)
	switch {
	case !ok && p.Follows:
		return nil, 0, 0, queries.ContinueTooOld(c.namespace, p.From)
	case !ok && p.Exact:
		return nil, 0, 0, refusal.ListTooOld()
	case !ok:
		return nil, 0, 0, refusal.TooOld(revision, tx.Compacted())
	}
	count = then.Count(p.Span)
	if most == 0 {
		most = count
	}
	objects = then.Take(p.Span, min(most, count))
	if c.sound() {
		for i, obj := range objects {
			objects[i] = s.seen(c, obj)
		}
	}
	return objects, count, revision, nil
}

func (s *Server) get(w http.ResponseWriter, c *call) error {
	revision, err := queries.ParseRevision(c.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	obj, err := s.find(c, revision)
	if err == nil {
		err = s.store.Kept(c.Context())
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
	tx := s.store.Begin()
	defer tx.End()
	if !tx.Wait(c.Context(), store.FreshWithin, func() bool { return tx.Revision() >= revision }) {
		return nil, refusal.TooLarge(revision, tx.Revision())
	}
	obj := tx.Get(c.kind.Held(), types.NamespacedName{Namespace: c.namespace, Name: c.name})
	if obj == nil {
		return nil, apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	return s.seen(c, obj), nil
}

// callOf returns the call that a Call of package serve was made from.
func callOf(c *serve.Call) *call { return c.Origin.(*call) }

// selectedBy returns the objects that the query of a deletion selects.
func (s *Server) selectedBy(asked *serve.Call) ([]*object.Object, metav1.ListMeta, error) {
	c := callOf(asked)
	query, err := c.query()
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	p, err := query.Page()
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return s.selected(c, p, query.Selection())
}

// losesAnswer tells the tracer that a write is about to be answered, and reports whether a
// fault loses the answer.
func (s *Server) losesAnswer(asked *serve.Call) bool {
	c := callOf(asked)
	if s.tracer != nil {
		s.tracer.Answering(c.traced)
	}
	return !asked.Sound && s.requests.LosesResponse(c.traced.Number, c.kind.GroupKind())
}
