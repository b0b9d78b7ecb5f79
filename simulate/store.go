// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/write"
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

// End unlocks the store.
func (o lockedStore) End() { o.server.mu.Unlock() }

// direct writes for the verbs of tests.
func (o lockedStore) direct() write.Direct { return write.Direct{Tx: o, Allotter: o.server.allotter} }

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
