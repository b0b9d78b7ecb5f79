// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// Heal ends all faults of the server: what was held back is told, what was
// poisoned can be read again, and from now on nothing goes wrong. What has
// happened has happened: watches that were muted stay so.
func (s *Server) Heal() {
	tx := s.store.Begin()
	defer tx.End()
	s.mu.Lock()
	old := s.mu.faults
	s.mu.faults = newFaults()
	s.mu.Unlock()
	maps.Copy(old.held, old.first)
	late := slices.AppendSeq(old.late, maps.Values(old.held))
	slices.SortFunc(late, func(a, b revisions.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	tx.Show(late)
	for _, id := range slices.SortedFunc(maps.Keys(old.poisoned), objectID.compare) {
		mendIn(tx, id, old.poisoned[id])
	}
	tx.Deliver()
}

func (id objectID) compare(other objectID) int {
	return cmp.Or(cmp.Compare(id.Group, other.Group), cmp.Compare(id.Resource, other.Resource), revisions.CompareKeys(id.NamespacedName, other.NamespacedName))
}

// mendIn gives a poisoned object back what it had before, as far as nobody
// has written it since.
func mendIn(tx *store.Tx, id objectID, before *object.Object) {
	now := tx.Get(id.GroupResource, id.NamespacedName)
	if now == nil || now.Meta().GetUID() != before.Meta().GetUID() {
		return
	}
	tx.Put(id.GroupResource, mended(now, before))
}

// mended is a copy of a poisoned object with what it had before.
func mended(o, before *object.Object) *object.Object {
	out := o.Copy()
	out.Poison = false
	for name, value := range before.Copy().Fields {
		if out.Fields[name] == int64(5) {
			out.Fields[name] = value
		}
	}
	return out
}

// seen is obj as c is to see it: no fault harms who plays the user. It is called in the
// transaction that obj was read in.
func (s *Server) seen(c *call, obj *object.Object) *object.Object {
	if !c.sound() {
		return obj
	}
	return s.unpoisoned(c.kind, obj)
}

// unpoisoned returns an object of a kind as it was before Poison, in the transaction that it
// was read in.
func (s *Server) unpoisoned(kind *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !obj.Poison {
		return obj
	}
	s.mu.Lock()
	before := s.mu.faults.poisoned[objectID{kind.GroupResource(), obj.Key()}]
	s.mu.Unlock()
	if before == nil || before.Meta().GetUID() != obj.Meta().GetUID() {
		return obj
	}
	return mended(obj, before)
}

// AcceptAll ends AcceptTokens.
func (s *Server) AcceptAll() { s.fault(func(f *faults) { f.tokens = nil }) }

// Watched is what the open watches are of, in order.
func (s *Server) Watched() []schema.GroupResource { return s.store.Watched() }

// Kinds are those that the server serves, in the order of their names.
func (s *Server) Kinds() []schema.GroupKind {
	all := map[schema.GroupKind]bool{}
	for _, k := range s.kinds.Served(func(*kinds.Kind) bool { return true }) {
		all[k.GroupVersionKind.GroupKind()] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
}

// KindOf is the kind of a resource; empty: the server does not serve it.
func (s *Server) KindOf(r schema.GroupResource) schema.GroupKind {
	if kind := s.kinds.Stored(r); kind != nil {
		return kind.GroupKind()
	}
	return schema.GroupKind{}
}

// IsCustom reports whether a CRD defines a kind.
func (s *Server) IsCustom(r schema.GroupResource) bool {
	f := s.kinds.Family(r)
	return f != nil && f.Definition != nil
}

// Change writes an object as somebody else would: f changes its metadata.
func (s *Server) Change(r schema.GroupResource, key types.NamespacedName, f func(metav1.Object)) error {
	old := s.store.Get(s.kinds.Held(r), key)
	if old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	obj := old.Copy()
	f(obj.Meta())
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	if kind == nil || tx.Get(s.kinds.Held(r), key) != old {
		return apierrors.NewConflict(r, key.String(), nil)
	}
	_, err := s.direct(tx).Update(kind, old, obj)
	return err
}
