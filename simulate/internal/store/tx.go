// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Tx is the store with its lock held. It is valid from Begin to End and used by one goroutine.
type Tx Store

// Begin locks the store until End.
func (s *Store) Begin() *Tx {
	s.mu.Lock()
	return (*Tx)(s)
}

// End unlocks the store.
func (tx *Tx) End() { tx.mu.Unlock() }

// Revision returns the newest revision.
func (tx *Tx) Revision() int64 { return tx.mu.log.Revision }

// Compacted returns the revision up to which the history is gone.
func (tx *Tx) Compacted() int64 { return tx.mu.log.Compacted }

// Get returns an object, or nil if there is none.
func (tx *Tx) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	return tx.mu.log.Get(r, key)
}

// List returns the objects of a resource in the order of their keys.
func (tx *Tx) List(r schema.GroupResource) []*object.Object {
	objects, _ := tx.mu.log.List(r, tx.mu.log.Revision)
	return objects
}

// Count returns the number of objects of a resource.
func (tx *Tx) Count(r schema.GroupResource) int {
	if objects := tx.mu.log.Objects[r]; objects != nil {
		return objects.Len()
	}
	return 0
}

// At returns the objects of a resource at a revision, which must neither be compacted nor in
// the future. The result is valid until the next write.
func (tx *Tx) At(r schema.GroupResource, revision int64) (revisions.Past, bool) {
	return tx.mu.log.At(r, revision)
}

// Shown returns the newest revision of a resource that lists from the cache and watches know.
func (tx *Tx) Shown(r schema.GroupResource) int64 { return (*Store)(tx).shownOfLocked(r) }

// Wait waits until done, until ctx ends, or for at most d, and reports whether done is true.
// Meanwhile the store is not locked.
func (tx *Tx) Wait(ctx context.Context, d time.Duration, done func() bool) bool {
	return (*Store)(tx).waitLocked(ctx, tx.changed, d, done)
}

// Put stores obj at the next revision and tells watches and observers.
func (tx *Tx) Put(r schema.GroupResource, obj *object.Object) *object.Object {
	tx.CompactIfDue()
	stored := tx.mu.log.Put(r, obj.Key(), obj)
	tx.wrote()
	return stored
}

// Remove removes an object at the next revision and tells watches and observers. It returns the
// last state, or nil if there was none.
func (tx *Tx) Remove(r schema.GroupResource, key types.NamespacedName) *object.Object {
	tx.CompactIfDue()
	removed := tx.mu.log.Remove(r, key)
	if removed != nil {
		tx.wrote()
	}
	return removed
}

// wrote does what follows the newest change.
func (tx *Tx) wrote() {
	s := (*Store)(tx)
	c := s.mu.log.Changes[len(s.mu.log.Changes)-1]
	s.deliverLocked()
	s.observedLocked(c)
	if s.after != nil {
		s.after(tx, c)
	}
}

// Install stores an object as if it had been there before: without a new revision, and without
// telling anybody.
func (tx *Tx) Install(r schema.GroupResource, obj *object.Object) {
	tx.mu.log.Set(r, obj.Key(), obj.At(tx.mu.log.Revision))
}

// Rewind undoes the last n revisions that are not compacted and ends all watches, as the
// restore of a backup does. Observers are told of what it undoes.
func (tx *Tx) Rewind(n int) {
	s := (*Store)(tx)
	for _, c := range s.mu.log.Rewind(n) {
		s.observedLocked(c)
	}
	now := s.mu.log.Revision
	s.mu.told, s.mu.keeping.reached = min(s.mu.told, now), min(s.mu.keeping.reached, now)
	s.cache.Rewound(now)
	s.mu.oldest = min(s.mu.oldest, now)
	s.mu.compaction.revision = min(s.mu.compaction.revision, now)
	s.eachWatchLocked((*Watch).endLocked)
}
