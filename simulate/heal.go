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
)

// Heal ends all faults of the server: what was held back is told, what was
// poisoned can be read again, and from now on nothing goes wrong. What has
// happened has happened: watches that were muted stay so.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mu.faults
	s.mu.faults = newFaults()
	maps.Copy(old.held, old.first)
	late := slices.AppendSeq(old.late, maps.Values(old.held))
	slices.SortFunc(late, func(a, b revisions.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, c := range late {
		s.eachWatchLocked(func(w *watch) { w.tell(c) })
	}
	for _, id := range slices.SortedFunc(maps.Keys(old.poisoned), objectID.compare) {
		s.mendLocked(id, old.poisoned[id])
	}
	s.tellLocked()
}

func (id objectID) compare(other objectID) int {
	return cmp.Or(cmp.Compare(id.Group, other.Group), cmp.Compare(id.Resource, other.Resource), revisions.CompareKeys(id.NamespacedName, other.NamespacedName))
}

// mendLocked gives a poisoned object back what it had before, as far as nobody
// has written it since.
func (s *Server) mendLocked(id objectID, before *object.Object) {
	now := s.mu.log.Get(id.GroupResource, id.NamespacedName)
	if now == nil || now.Meta().GetUID() != before.Meta().GetUID() {
		return
	}
	s.putLocked(id.GroupResource, mended(now, before))
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

// seenLocked is obj as c is to see it: no fault harms who plays the user.
func (s *Server) seenLocked(c *call, obj *object.Object) *object.Object {
	if !c.sound() {
		return obj
	}
	return s.unpoisonedLocked(c.kind, obj)
}

// unpoisonedLocked returns an object of a kind as it was before Poison.
func (s *Server) unpoisonedLocked(kind *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !obj.Poison {
		return obj
	}
	before := s.mu.faults.poisoned[objectID{kind.GroupResource(), obj.Key()}]
	if before == nil || before.Meta().GetUID() != obj.Meta().GetUID() {
		return obj
	}
	return mended(obj, before)
}

// AcceptAll ends AcceptTokens.
func (s *Server) AcceptAll() { s.fault(func(f *faults) { f.tokens = nil }) }

// Watched is what the open watches are of, in order.
func (s *Server) Watched() []schema.GroupResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[schema.GroupResource]bool{}
	for w := range s.mu.watches {
		all[w.kind.GroupResource()] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// Kinds are those that the server serves, in the order of their names.
func (s *Server) Kinds() []schema.GroupKind {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind := s.kinds.Stored(r); kind != nil {
		return kind.GroupKind()
	}
	return schema.GroupKind{}
}

// IsCustom reports whether a CRD defines a kind.
func (s *Server) IsCustom(r schema.GroupResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.kinds.Family(r)
	return f != nil && f.Definition != nil
}

// Change writes an object as somebody else would: f changes its metadata.
func (s *Server) Change(r schema.GroupResource, key types.NamespacedName, f func(metav1.Object)) error {
	s.mu.Lock()
	old := s.mu.log.Get(s.kinds.Held(r), key)
	s.mu.Unlock()
	if old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	obj := old.Copy()
	f(obj.Meta())
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kinds.Stored(r)
	if kind == nil || s.mu.log.Get(s.kinds.Held(r), key) != old {
		return apierrors.NewConflict(r, key.String(), nil)
	}
	_, err := s.storeLocked().direct().Update(kind, old, obj)
	return err
}
