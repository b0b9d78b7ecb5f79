// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"iter"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// ErrClosed is returned by Pop and PopBatch when the DeltaFIFO is closed and
// nothing waits in it.
var ErrClosed = errors.New("pop: the DeltaFIFO is closed")

// Known is what has been popped and applied: the Indexer. It is called without
// the DeltaFIFO's lock.
type Known[T base.Object] interface {
	// begin notes that a list of scope has begun.
	Begin(scope base.ScopeID)
	// knownIn yields what a scope holds.
	KnownIn(scope base.ScopeID) iter.Seq2[base.Key, known[T]]
	// knownAs is what is known of key; held: by scope.
	knownAs(key base.Key, scope base.ScopeID) (k known[T], held bool)
	// trouble is why key's object cannot be decoded, with its metadata if that
	// could be; nil: it can.
	trouble(key base.Key) (*metav1.PartialObjectMetadata, error)
}

// known is one object as it is known.
type known[T base.Object] struct {
	Object  T // the last that could be decoded, or zero
	UID     types.UID
	Version base.Version
	// Bad: what the server has cannot be decoded.
	Bad bool
	// Ahead: of an own write that the scope has not reached.
	Ahead bool
}

// DeltaFIFO is the log between the Reflectors and the Indexer: deltas in the
// order of their streams, popped a batch at a time.
// Make one with NewDeltaFIFO. Safe for concurrent use; one goroutine pops.
type DeltaFIFO[T base.Object] struct {
	known Known[T]
	woken *sync.Cond // on mu: something waits, or the waiting is to end
	mu    struct {
		sync.Mutex
		log    deltaLog[T]
		closed bool
	}
}

// NewDeltaFIFO makes an empty log. It starts nothing.
func NewDeltaFIFO[T base.Object](known Known[T]) *DeltaFIFO[T] {
	f := &DeltaFIFO[T]{known: known}
	f.woken = sync.NewCond(&f.mu)
	return f
}

// Push appends a delta of a watch: Added, Updated or Deleted. Two deletions of
// a key in a row become one, the one that knows the final state. Above a
// backlog of some thousand deltas, an update goes into the key's last one, unless
// a handler asks for every event.
func (f *DeltaFIFO[T]) Push(d Delta[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.mu.log.push(d)
		f.woken.Signal()
	}
}

// Keep every update, until what waits takes so many bytes. Negative: always. 0:
// nobody asks for every update.
func (f *DeltaFIFO[T]) Keep(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.keep = bytes
}

// Bookmark notes that scope has reached v.
func (f *DeltaFIFO[T]) Bookmark(scope base.ScopeID, v base.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.mu.log.mark(scope, v)
		f.woken.Signal()
	}
}

// Resync appends a Sync delta, for one handler, for each of objects of which no
// delta waits that will tell the handler anyway.
func (f *DeltaFIFO[T]) Resync(scope base.ScopeID, handler int, objects iter.Seq2[base.Key, T]) {
	for key, obj := range objects {
		f.mu.Lock()
		if !f.mu.closed && !f.mu.log.tells(key, handler) {
			f.mu.log.push(Delta[T]{
				Type: Sync, Key: key, Scope: scope, Handler: handler, Object: obj,
				UID: obj.GetUID(), Version: base.ParseVersion(obj.GetResourceVersion()),
			})
			f.woken.Signal()
		}
		f.mu.Unlock()
	}
}

// Waits reports whether PopBatch would return at once.
func (f *DeltaFIFO[T]) Waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.places.Len() > 0
}

// PopBatch blocks until something waits and takes the front of the log. Lists
// come whole. It returns ctx's error when ctx ends.
func (f *DeltaFIFO[T]) PopBatch(ctx context.Context) (Batch[T], error) {
	defer f.WakeAtEnd(ctx)()
	return f.PopBatchWoken(ctx)
}

// PopBatchWoken is PopBatch for a caller of WakeAtEnd.
func (f *DeltaFIFO[T]) PopBatchWoken(ctx context.Context) (Batch[T], error) {
	if err := f.wait(ctx); err != nil {
		return Batch[T]{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.batch(BatchLimit), nil
}

// WakeAtEnd has who waits look at ctx when it ends, until stop is called.
func (f *DeltaFIFO[T]) WakeAtEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.woken.Broadcast()
	})
}

// wait blocks until something waits in the log, or ctx has ended and somebody
// wakes it.
func (f *DeltaFIFO[T]) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.release()
	for f.mu.log.places.Len() == 0 {
		if f.mu.closed {
			return ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f.woken.Wait()
	}
	return nil
}

// Newest is the version of key in scope that waits, or else is known; 0: none.
func (f *DeltaFIFO[T]) Newest(scope base.ScopeID, key base.Key) base.Version {
	f.mu.Lock()
	v := f.mu.log.Newest(key)
	f.mu.Unlock()
	k, _ := f.known.knownAs(key, scope)
	return max(v, k.Version)
}

// Len is the number of deltas that wait.
func (f *DeltaFIFO[T]) Len() int { return f.Snapshot().Deltas }

// FIFOSnapshot says what waits in a DeltaFIFO.
type FIFOSnapshot struct {
	Deltas int    // that wait
	Merged uint64 // deltas that went into an earlier one, since the start
}

// Snapshot says what waits.
func (f *DeltaFIFO[T]) Snapshot() FIFOSnapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return FIFOSnapshot{Deltas: f.mu.log.live, Merged: f.mu.log.merged}
}

// Close lets Pop and PopBatch return ErrClosed once nothing waits. What is
// pushed later is dropped.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.woken.Broadcast()
}
