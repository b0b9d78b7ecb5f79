// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/deletion"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/strategy"
)

// putLocked stores obj at the next revision, and tells of it.
func (s *Server) putLocked(r schema.GroupResource, obj *object.Object) *object.Object {
	s.compactLocked()
	stored := s.mu.log.Put(r, obj.Key(), obj)
	s.afterLocked()
	return stored
}

// takeLocked removes the object of key at the next revision, and tells of it.
// It returns the last state, nil if there was none.
func (s *Server) takeLocked(r schema.GroupResource, key types.NamespacedName) *object.Object {
	s.compactLocked()
	removed := s.mu.log.Remove(r, key)
	if removed != nil {
		s.afterLocked()
	}
	return removed
}

// afterLocked does what follows the newest change: watches and observers are
// told of it, and CRDs come into force.
func (s *Server) afterLocked() {
	c := s.mu.log.Changes[len(s.mu.log.Changes)-1]
	s.tellLocked()
	s.observedLocked(c)
	if c.Resource == kinds.Definitions {
		s.definitions.Changed(s.storeLocked(), c)
	} else if c.After == nil {
		s.definitions.Removed(s.storeLocked(), c.Resource)
	}
}

// lockedStore is what a server has stored, for a caller that holds its lock.
type lockedStore struct {
	server *Server
	log    *revisions.Log
}

func (s *Server) storeLocked() lockedStore { return lockedStore{s, s.mu.log} }

// Get returns one object; nil: there is none.
func (o lockedStore) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	return o.log.Get(r, key)
}

// List returns the objects of a resource in the order of their keys.
func (o lockedStore) List(r schema.GroupResource) []*object.Object {
	objects, _ := o.log.List(r, o.log.Revision)
	return objects
}

// Count returns how many objects of a resource there are.
func (o lockedStore) Count(r schema.GroupResource) int {
	if objects := o.log.Objects[r]; objects != nil {
		return objects.Len()
	}
	return 0
}

// Put stores obj at the next revision, and announces it.
func (o lockedStore) Put(r schema.GroupResource, obj *object.Object) *object.Object {
	return o.server.putLocked(r, obj)
}

// Remove removes the object of key at the next revision, and announces it.
func (o lockedStore) Remove(r schema.GroupResource, key types.NamespacedName) *object.Object {
	return o.server.takeLocked(r, key)
}

// Revision returns the current revision.
func (o lockedStore) Revision() int64 { return o.log.Revision }

func (s *Server) observedLocked(c revisions.Change) {
	for _, observe := range s.mu.observers {
		if observe != nil {
			observe(c)
		}
	}
}

// observeLocked has an observer called from now on. forget, which needs the
// lock too, ends that.
func (s *Server) observeLocked(observe func(revisions.Change)) (forgetLocked func()) {
	i := slices.IndexFunc(s.mu.observers, func(o func(revisions.Change)) bool { return o == nil })
	if i < 0 {
		i = len(s.mu.observers)
		s.mu.observers = append(s.mu.observers, nil)
	}
	s.mu.observers[i] = observe
	return func() { s.mu.observers[i] = nil }
}

// What is stored by the verbs of tests and actors, without the hops of a
// request: nothing is filled in, and nobody is said to own it.

// createLocked stores a new object.
func (s *Server) createLocked(kind *kinds.Kind, obj *object.Object) (*object.Object, error) {
	m, r := obj.Meta(), kind.Held()
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(s.allotter.Name(m.GetGenerateName()))
	}
	switch {
	case m.GetName() == "":
		return nil, refusal.Invalid(kind.GroupKind(), "", "metadata.name", "Required value: name or generateName is required")
	case s.mu.log.Get(r, obj.Key()) != nil:
		return nil, apierrors.NewAlreadyExists(r, m.GetName())
	case kind.Namespaced && s.homeLocked(m.GetNamespace()) == nil:
		return nil, fmt.Errorf("%w; name it in Options.Namespaces, or put it first", apierrors.NewNotFound(object.Namespaces, m.GetNamespace()))
	}
	m.SetUID(s.allotter.UID())
	m.SetCreationTimestamp(jsonvalue.Now())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	if kind.CountsFromCreation(obj) {
		m.SetGeneration(1)
	}
	return s.putLocked(r, obj), nil
}

// updateLocked replaces old by obj.
func (s *Server) updateLocked(kind *kinds.Kind, old, obj *object.Object) (*object.Object, error) {
	r, m := kind.Held(), obj.Meta()
	managed := old.Meta().GetManagedFields()
	q := &writing{call: &call{kind: kind, namespace: m.GetNamespace(), name: m.GetName()}}
	if err := q.checkVersion(old, obj); err != nil {
		return nil, err
	}
	m.SetUID(old.Meta().GetUID())
	m.SetCreationTimestamp(old.Meta().GetCreationTimestamp())
	m.SetDeletionTimestamp(old.Meta().GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(old.Meta().GetDeletionGracePeriodSeconds())
	m.SetGeneration(old.Meta().GetGeneration())
	m.SetResourceVersion(old.Meta().GetResourceVersion())
	if len(managed) > 0 && len(m.GetManagedFields()) == 0 {
		m.SetManagedFields(managed)
	}
	if strategy.Counts(kind, old, obj) {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	if object.Same(old, obj) {
		return old, nil // not even a new version
	}
	if deletion.Completes(old, obj) {
		s.takeLocked(r, obj.Key())
		return obj, nil
	}
	return s.putLocked(r, obj), nil
}
