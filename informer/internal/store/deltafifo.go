// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// ErrClosed is returned by PopBatch when the DeltaFIFO is closed and empty.
var ErrClosed = errors.New("pop: the DeltaFIFO is closed")

// Known is what has been popped and applied: the Indexer. It is called without
// the DeltaFIFO's lock.
type Known interface {
	// Begin records that a list of scope has begun.
	Begin(scope base.ScopeID)
	// KnownIn yields what a scope holds.
	KnownIn(scope base.ScopeID) iter.Seq2[kube.Key, known]
	// knownAs returns what is known of key, and whether scope holds it.
	knownAs(key kube.Key, scope base.ScopeID) (k known, held bool)
	// trouble returns why key's object is undecodable, or nil.
	trouble(key kube.Key) (*metav1.PartialObjectMetadata, error)
}

// known is one object as the Indexer has it.
type known struct {
	Key     kube.Key
	Object  kube.Object // the last that could be decoded, or zero
	UID     types.UID
	Version kube.Version
	// Undecodable: the server's version cannot be decoded.
	Undecodable bool
	// Ahead: an own write that the scope has not reached.
	Ahead bool
}

// DeltaFIFO is the log between the Reflectors and the Indexer: deltas in stream
// order, popped in batches. Make one with NewDeltaFIFO. Safe for concurrent
// use; only one goroutine pops.
type DeltaFIFO struct {
	known  Known
	packer atomic.Pointer[compact.Packer] // nil: objects are not packed
	woken  *sync.Cond                     // on mu: something waits, or waiting must end
	mu     struct {
		sync.Mutex
		log    deltaLog
		closed bool
	}
}

// NewDeltaFIFO returns an empty log. It starts nothing.
func NewDeltaFIFO(known Known) *DeltaFIFO {
	f := &DeltaFIFO{known: known}
	f.woken = sync.NewCond(&f.mu)
	return f
}

// Push appends a delta of a watch: Added, Updated or Deleted. Two consecutive
// deletions of a key become one, the one that knows the final state. Above a
// backlog of mergeAbove deltas, an update merges into the key's last delta,
// unless a handler asks for every event.
func (f *DeltaFIFO) Push(d Delta) {
	d = f.packed(d)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.mu.log.push(d)
		f.woken.Signal()
	}
}

// Pack makes p pack the objects that are pushed or listed from now on.
func (f *DeltaFIFO) Pack(p *compact.Packer) { f.packer.Store(p) }

// packed returns d with its object packed, and with a key and UID that do not
// hold the object that they were decoded with.
func (f *DeltaFIFO) packed(d Delta) Delta {
	p := f.packer.Load()
	if p == nil || d.Object == nil {
		return d
	}
	if !compact.IsPacked(d.Object) { // as those of a tap
		d.Object = p.Pack(d.Object, nil, nil)
		if compact.IsPacked(d.Object) {
			d.Heap = compact.HeapOf(d.Object)
		}
	}
	if k, _ := f.known.knownAs(d.Key, d.Scope); k.UID == d.UID && k.Key == d.Key {
		d.Key, d.UID = k.Key, k.UID
	} else {
		d.Key, d.UID = p.Own(d.Key, d.UID)
	}
	return d
}

// Keep keeps every update until the backlog takes that many bytes. Negative:
// always. 0: no handler asks for every update.
func (f *DeltaFIFO) Keep(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.keep = bytes
}

// Bookmark records that scope has reached v.
func (f *DeltaFIFO) Bookmark(scope base.ScopeID, v kube.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.mu.log.mark(scope, v)
		f.woken.Signal()
	}
}

// Pass records that what is put in for scope from now on is of a generation,
// which grows. The batch that has all that was put in before says so.
func (f *DeltaFIFO) Pass(scope base.ScopeID, generation uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.mu.log.pass(scope, generation)
		f.woken.Signal()
	}
}

// Resync appends a Sync delta for one handler, for each object without a
// waiting delta that reaches the handler anyway.
func (f *DeltaFIFO) Resync(scope base.ScopeID, handler int, objects iter.Seq2[kube.Key, known]) {
	for key, k := range objects {
		f.mu.Lock()
		if !f.mu.closed && !f.mu.log.reaches(key, handler) {
			f.mu.log.push(Delta{
				Type: Sync, Key: key, Scope: scope, Handler: handler, Object: k.Object,
				UID: k.UID, Version: k.Version,
			})
			f.woken.Signal()
		}
		f.mu.Unlock()
	}
}

// Waits reports whether PopBatch would return at once.
func (f *DeltaFIFO) Waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.places.Len() > 0
}

// PopBatch blocks until something waits, and takes the front of the log. A list
// is never split. It returns ctx's error when ctx ends.
func (f *DeltaFIFO) PopBatch(ctx context.Context) (Batch, error) {
	defer f.WakeAtEnd(ctx)()
	return f.PopBatchWoken(ctx)
}

// PopBatchWoken is PopBatch for a caller of WakeAtEnd.
func (f *DeltaFIFO) PopBatchWoken(ctx context.Context) (Batch, error) {
	if err := f.wait(ctx); err != nil {
		return Batch{}, err
	}
	b := f.batch()
	// What entered before the informer became compact is not packed yet. The log reads the batch
	// that it has given, so that is not modified.
	open := func(d Delta) bool { return d.Object != nil && !compact.IsPacked(d.Object) }
	if f.packer.Load() != nil && slices.ContainsFunc(b.Deltas, open) {
		b.Deltas = slices.Clone(b.Deltas)
		for i, d := range b.Deltas {
			b.Deltas[i] = f.packed(d)
		}
	}
	return b, nil
}

func (f *DeltaFIFO) batch() Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.batch(BatchLimit)
}

// WakeAtEnd wakes blocked poppers when ctx ends, until stop is called.
func (f *DeltaFIFO) WakeAtEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.woken.Broadcast()
	})
}

// wait blocks until something waits in the log, or until it is woken after ctx
// has ended.
func (f *DeltaFIFO) wait(ctx context.Context) error {
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

// Newest returns the newest waiting or known version of key in scope; 0: none.
func (f *DeltaFIFO) Newest(scope base.ScopeID, key kube.Key) kube.Version {
	f.mu.Lock()
	v := f.mu.log.Newest(key)
	f.mu.Unlock()
	k, _ := f.known.knownAs(key, scope)
	return max(v, k.Version)
}

// Heap returns the memory of the objects that are not in the Indexer yet, in
// bytes.
func (f *DeltaFIFO) Heap() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.heap + f.mu.log.flying
}

// Applied records that the last batch is in the Indexer.
func (f *DeltaFIFO) Applied() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.flying = 0
}

// Len returns the number of waiting deltas.
func (f *DeltaFIFO) Len() int { return f.Snapshot().Deltas }

// FIFOSnapshot is the state of a DeltaFIFO.
type FIFOSnapshot struct {
	Deltas int    // waiting
	Merged uint64 // deltas merged into an earlier one since the start
}

// Snapshot returns the present state.
func (f *DeltaFIFO) Snapshot() FIFOSnapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return FIFOSnapshot{Deltas: f.mu.log.live, Merged: f.mu.log.merged}
}

// Close makes PopBatch return ErrClosed once nothing waits. Later pushes are
// dropped.
func (f *DeltaFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.woken.Broadcast()
}
