// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// ErrClosed is returned by Pop and PopBatch when the DeltaFIFO is closed and empty.
var ErrClosed = errors.New("pop: the DeltaFIFO is closed")

// Known is what has been popped and applied: the Indexer.
type Known[T Object] interface {
	knownIn(scope ScopeID) iter.Seq2[Key, known[T]]
	knownAs(key Key, scope ScopeID) (known[T], bool)
}

type known[T Object] struct {
	Object  T
	UID     types.UID
	Version Version
}

// DeltaFIFO is the log of deltas between the reflectors and the Indexer.
type DeltaFIFO[T Object] struct{}

// NewDeltaFIFO makes an empty log. It starts nothing.
func NewDeltaFIFO[T Object](known Known[T]) *DeltaFIFO[T] { return &DeltaFIFO[T]{} }

// Push appends a delta of a watch.
func (f *DeltaFIFO[T]) Push(d Delta[T]) {}

// Bookmark notes that a scope has reached v.
func (f *DeltaFIFO[T]) Bookmark(scope ScopeID, v Version) {}

// Replace begins to collect a list of scope.
func (f *DeltaFIFO[T]) Replace(scope ScopeID) *Replacement[T] { return &Replacement[T]{} }

// Resync appends Sync deltas for objects of which no delta waits.
func (f *DeltaFIFO[T]) Resync(scope ScopeID, objects iter.Seq2[Key, T]) {}

// Pop blocks for the oldest key and returns all its waiting deltas.
func (f *DeltaFIFO[T]) Pop(ctx context.Context) ([]Delta[T], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// PopBatch blocks until something waits and returns the front of the log.
func (f *DeltaFIFO[T]) PopBatch(ctx context.Context) (Batch[T], error) {
	<-ctx.Done()
	return Batch[T]{}, ctx.Err()
}

// SyncedScope is closed when the first list of scope has been popped.
func (f *DeltaFIFO[T]) SyncedScope(scope ScopeID) <-chan struct{} { return nil }

// Len is the number of deltas that wait.
func (f *DeltaFIFO[T]) Len() int { return 0 }

// Close lets Pop and PopBatch return ErrClosed once nothing waits. Pushes are dropped.
func (f *DeltaFIFO[T]) Close() {}

// FIFOSnapshot says what waits.
type FIFOSnapshot struct {
	Deltas int    // waiting
	Keys   int    // with a waiting delta
	Merged uint64 // deltas that went into an earlier one, since the start
}

// Snapshot says what waits.
func (f *DeltaFIFO[T]) Snapshot() FIFOSnapshot { return FIFOSnapshot{} }

// Replacement collects one list. One goroutine uses it.
type Replacement[T Object] struct{}

// Add notes an object of the list.
func (r *Replacement[T]) Add(d Delta[T]) {}

// Unreadable notes an item that has no readable key: this list deletes nothing.
func (r *Replacement[T]) Unreadable() {}

// Epoch declares that the server's revisions went back: every object of the
// list enters, and versions from before mean nothing. Before the first Add.
func (r *Replacement[T]) Epoch() {}

// Commit ends the list, which is of version v.
func (r *Replacement[T]) Commit(v Version) {}

// Abort drops what was collected: the list failed half way.
func (r *Replacement[T]) Abort() {}
