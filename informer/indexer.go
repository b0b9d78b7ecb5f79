// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IndexFunc gives the values under which an index finds obj; none is fine. It
// is called by the informer's own goroutine, must not change obj, and must not
// block.
type IndexFunc[T Object] func(obj T) []string

// Indexer holds the objects of one kind by key.
type Indexer[T Object] struct {
	kind schema.GroupVersionKind
}

// NewIndexer makes an empty Indexer.
func NewIndexer[T Object](kind schema.GroupVersionKind) *Indexer[T] { return &Indexer[T]{kind: kind} }

// AddIndex adds a named index, also over what is there already.
func (x *Indexer[T]) AddIndex(name string, f IndexFunc[T]) error { return nil }

// Len is the number of objects, those that cannot be decoded among them.
func (x *Indexer[T]) Len() int { return 0 }

// apply takes a whole batch under one lock and returns what changed, in order.
// The error names index functions that panicked; the batch is applied all the same.
func (x *Indexer[T]) apply(b Batch[T]) ([]change[T], error) { return nil, nil }

// observe takes the answer to an own write. The error is as of apply.
func (x *Indexer[T]) observe(w observed[T]) ([]change[T], error) { return nil, nil }

// whenPassed calls do once: when the key's version is above than, or the key
// is gone; at once if so already. stop ends the waiting.
func (x *Indexer[T]) whenPassed(key Key, than Version, do func()) (stop func()) { return func() {} }

// reached is the version that a scope has reached; 0: no list has ended.
func (x *Indexer[T]) reached(scope ScopeID) Version { return 0 }

// awaits is the version of an own write that is not shown yet; 0: none.
func (x *Indexer[T]) awaits(key Key) Version { return 0 }

// present is everything a filter sees, as changes from nothing: what a handler
// that joins is given. resync: as the same objects given again.
func (x *Indexer[T]) present(filter *scopeSet, resync bool) iter.Seq[change[T]] {
	return func(func(change[T]) bool) {}
}

// snapshot says what the Indexer holds.
func (x *Indexer[T]) snapshot() indexerSnapshot { return indexerSnapshot{} }

// indexerSnapshot counts what an Indexer holds.
type indexerSnapshot struct {
	Objects     int
	Quarantined int    // of Objects: cannot be decoded
	Tombstones  int    // deletions remembered
	Forgotten   uint64 // tombstones that went because there were too many
	Awaiting    int    // keys with an own write not shown yet
	NotOverlaid uint64 // own writes not shown at once: their version is unknown
	IndexPanics uint64
	Indices     []string
}

func (x *Indexer[T]) knownIn(scope ScopeID) iter.Seq2[Key, known[T]] {
	return func(func(Key, known[T]) bool) {}
}

func (x *Indexer[T]) knownAs(key Key, scope ScopeID) (known[T], bool) { return known[T]{}, false }
