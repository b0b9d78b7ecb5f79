// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/internal/deque"
)

// Replacement collects what a list of one scope changes, page by page, without
// a copy of what it does not change. Nothing enters the log before Commit.
// One goroutine uses it, and pushes nothing else for the scope meanwhile.
type Replacement[T base.Object] struct {
	fifo    *DeltaFIFO[T]
	scope   base.ScopeID
	seen    map[base.Key]struct{} // what the list has: at first without what is in deltas
	whole   bool                  // seen has all
	deltas  deque.Deque[Delta[T]]
	epoch   bool
	content bool // compare it
	keepAll bool
	undone  map[base.Key]base.Version // what is known of objects that the list has in an older version
}

// Replace begins to collect a list of scope.
func (f *DeltaFIFO[T]) Replace(scope base.ScopeID) *Replacement[T] {
	f.known.Begin(scope)
	return &Replacement[T]{fifo: f, scope: scope, seen: make(map[base.Key]struct{})}
}

// Epoch declares that the server's revisions went back: every object of the
// list enters, and versions from before mean nothing. It comes before any Add.
func (r *Replacement[T]) Epoch() { r.epoch = true }

// Recompare has objects of the same version compared by content, as they are
// after the transform: the schema of their kind may have changed. What differs
// enters, and is told as an update; what is equal is no news. It comes before
// any Add.
func (r *Replacement[T]) Recompare() { r.content = true }

// Unreadable notes an item without a readable key. It may be any of the known
// objects, so this list deletes none.
func (r *Replacement[T]) Unreadable() { r.keepAll = true }

// Keep notes that the list says nothing sound of key: what is known of it stays.
func (r *Replacement[T]) Keep(key base.Key) { r.seen[key] = struct{}{} }

// Add notes an object of the list. One that is known in this version, with
// nothing on its way for its key, is only noted as seen. Of two states of an
// object the later one counts.
func (r *Replacement[T]) Add(d Delta[T]) {
	delete(r.undone, d.Key)
	if r.unchanged(d) {
		r.seen[d.Key] = struct{}{}
		return
	}
	d.Type, d.Scope, d.Recompared = Replaced, r.scope, r.content
	r.deltas.Push(d)
}

// Remove notes the end of an object that a streaming list told of before its
// own end: it leaves with the list, in its last known state.
func (r *Replacement[T]) Remove(d Delta[T]) {
	delete(r.undone, d.Key)
	d.Type, d.Scope = Deleted, r.scope
	r.deltas.Push(d)
}

func (r *Replacement[T]) unchanged(d Delta[T]) bool {
	if r.epoch || d.Version == 0 {
		return false
	}
	r.fifo.mu.Lock()
	waits := r.fifo.mu.log.waits(d.Key)
	r.fifo.mu.Unlock()
	if waits {
		return false
	}
	k, held := r.fifo.known.knownAs(d.Key, r.scope)
	if d.Version < k.Version || d.Version == k.Version && d.UID != k.UID {
		if r.undone == nil {
			r.undone = make(map[base.Key]base.Version)
		}
		r.undone[d.Key] = k.Version
	}
	// What is ahead enters all the same: an own write that is not in the list's
	// batch is one that the list does not have.
	if !held || k.Ahead || k.UID != d.UID || k.Version != d.Version {
		return false
	}
	switch {
	case !r.content:
		return d.Err != nil || !k.Bad
	case d.Err != nil:
		return k.Bad
	}
	return !k.Bad && alike(k.Object, d.Object)
}

// Undone are the objects that the list, which is of version v, has in an older
// version than was known before, though v is not older than that: a server whose
// versions went back shows such.
func (r *Replacement[T]) Undone(v base.Version) (keys []base.Key) {
	for key, known := range r.undone {
		if known <= v {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, base.CompareKeys)
	return keys
}

// Commit ends the list, which is of version v. What the scope held and the
// list does not have is deleted, its final state unknown. All of it enters the
// log as one batch.
func (r *Replacement[T]) Commit(v base.Version) {
	if !r.keepAll {
		r.disappeared(v)
	}
	f := r.fifo
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed && !f.mu.log.scope(r.scope).ended {
		f.mu.log.group(r.scope, &r.deltas, v, r.epoch)
		f.woken.Signal()
	}
	r.Abort()
}

func (r *Replacement[T]) disappeared(v base.Version) {
	// What waits is asked first: what is applied between the two questions is
	// then in both answers, and not in neither.
	r.fifo.mu.Lock()
	waiting := r.fifo.mu.log.waiting(r.scope)
	r.fifo.mu.Unlock()
	gone := Delta[T]{Type: Deleted, Scope: r.scope, Version: v, FinalStateUnknown: true}
	for key, k := range r.fifo.known.KnownIn(r.scope) {
		if r.has(key) {
			continue
		}
		w, waits := waiting[key]
		if waits && (w.UID == k.UID || w.Version > k.Version) {
			continue // what waits tells of its end, or is told of below
		}
		gone.Key, gone.UID, gone.Object = key, k.UID, k.Object
		r.deltas.Push(gone)
	}
	for key, w := range waiting {
		if !r.has(key) && w.Type != Deleted {
			gone.Key, gone.UID, gone.Object = key, w.UID, w.Object
			r.deltas.Push(gone)
		}
	}
}

// has says whether the list has the key, or told of its end. A first list is
// hardly ever asked.
func (r *Replacement[T]) has(key base.Key) bool {
	if !r.whole {
		for at := r.deltas.Front(); at < r.deltas.Back(); at++ {
			r.seen[r.deltas.At(at).Key] = struct{}{}
		}
		r.whole = true
	}
	_, ok := r.seen[key]
	return ok
}

// Abort drops what was collected: the list failed half way.
func (r *Replacement[T]) Abort() { r.deltas, r.seen, r.undone = deque.Deque[Delta[T]]{}, nil, nil }
