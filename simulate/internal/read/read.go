// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package read answers which objects a get, a list or a watch shows, at which revision, and
// which events a watch sends when. It reads a store; the form of answers, and the faults on
// their way to the client, are those of its caller.
//
// A get and a list without a version show the newest state. A list of any version, and a watch,
// show what the watch cache knows, which can lag behind. A version in the future is waited for.
//
// Parse reads the query of a list, a watch or a deletion of a collection: which objects are
// selected, which page at which revision is wanted, and what a watch starts from. It refuses
// invalid parameters with the status of a real server, and depends on the request alone. Only
// with Query.SelectShard does a shard selector count, as with the feature gate of a real server.
package read

import (
	"cmp"
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// Reader reads a store. It is safe for concurrent use.
type Reader struct {
	Store *store.Store
	Kinds *kinds.Registry
	// Seen returns an object as a Request with Sound sees it, in the transaction in which the
	// object was read.
	Seen func(kind *kinds.Kind, obj *object.Object) *object.Object
	// ExpiresContinue reports whether a continue token is refused as too old, although its
	// revision is there. Requests with Sound are not asked about.
	ExpiresContinue func() bool
}

// Request is the target of a read.
type Request struct {
	Kind            *kinds.Kind
	Namespace, Name string // empty: all
	// Sound reads objects as they were before a fault damaged them.
	Sound bool
}

// Get returns one object at least as new as a revision.
func (r *Reader) Get(ctx context.Context, q Request, revision int64) (*object.Object, error) {
	tx := r.Store.Begin()
	defer tx.End()
	if !tx.Wait(ctx, store.FreshWithin, func() bool { return tx.Revision() >= revision }) {
		return nil, refusal.TooLarge(revision, tx.Revision())
	}
	obj := tx.Get(q.Kind.Held(), types.NamespacedName{Namespace: q.Namespace, Name: q.Name})
	if obj == nil {
		return nil, apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
	}
	if q.Sound {
		obj = r.Seen(q.Kind, obj)
	}
	return obj, nil
}

// List returns the selected objects of a page. The metadata says where the next page begins.
func (r *Reader) List(ctx context.Context, q Request, p Page, sel Selection) ([]*object.Object, metav1.ListMeta, error) {
	most := p.Limit
	if !sel.All() {
		most = 0
	}
	state, err := r.page(ctx, q, p, most)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	version := strconv.FormatInt(state.revision, 10)
	meta := metav1.ListMeta{ResourceVersion: version, ShardInfo: sel.shardInfo()}
	taken, last := state.objects, len(state.objects)
	if !sel.All() {
		sel.Converts = true // the store is not locked
		taken, last = sel.First(state.objects, p.Limit)
	}
	if p.Limit > 0 && len(taken) == p.Limit && last < state.count {
		meta.Continue = ContinueAfter(q.Namespace, taken[p.Limit-1].Key(), state.revision)
		if sel.All() {
			meta.RemainingItemCount = new(int64(state.count - p.Limit))
		}
	}
	return taken, meta, nil
}

// state is what a kind has within the span of a page at a revision.
type state struct {
	objects  []*object.Object // the first ones
	count    int              // of all
	revision int64
}

// page reads the state that a page is of, with at most this many objects. 0: all.
func (r *Reader) page(ctx context.Context, q Request, p Page, most int) (state, error) {
	tx := r.Store.Begin()
	defer tx.End()
	tx.CompactIfDue()
	if p.Follows && !q.Sound && r.ExpiresContinue() {
		return state{}, ContinueTooOld(q.Namespace, p.From)
	}
	known := func() int64 { return tx.Shown(q.Kind.Held()) }
	if p.Newest || p.Follows {
		known = tx.Revision
	}
	if !tx.Wait(ctx, store.FreshWithin, func() bool { return known() >= p.Revision }) {
		return state{}, refusal.TooLarge(p.Revision, known())
	}
	out := state{revision: known()}
	if p.Exact {
		out.revision = p.Revision
	}
	then, ok := tx.At(q.Kind.Held(), out.revision)
	switch {
	case !ok && p.Follows:
		return state{}, ContinueTooOld(q.Namespace, p.From)
	case !ok && p.Exact:
		return state{}, refusal.ListTooOld()
	case !ok:
		return state{}, refusal.TooOld(out.revision, tx.Compacted())
	}
	out.count = then.Count(p.Span)
	most = cmp.Or(most, out.count)
	out.objects = then.Take(p.Span, min(most, out.count))
	if q.Sound {
		for i, obj := range out.objects {
			out.objects[i] = r.Seen(q.Kind, obj)
		}
	}
	return out, nil
}
