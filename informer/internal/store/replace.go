// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/kube"
)

// Replacement collects the differences of a list of one scope, page by page,
// without copying unchanged objects. Nothing enters the log before Commit. One
// goroutine uses it, and pushes nothing else for the scope meanwhile.
type Replacement struct {
	fifo    *DeltaFIFO
	scope   base.ScopeID
	seen    map[kube.Key]struct{} // keys of the list; excludes those in deltas until whole
	whole   bool                  // seen is complete
	deltas  deque.Deque[Delta]
	heap    int64 // of the deltas
	epoch   bool
	content bool                      // compare by content
	keeps   *keeps                    // nil: none
	undone  map[kube.Key]kube.Version // known versions of objects that the list has in an older version
	rewound bool                      // a list of new revisions waits, so known versions may be of the earlier ones
}

// Replace begins to collect a list of scope.
func (f *DeltaFIFO) Replace(scope base.ScopeID) *Replacement {
	f.known.Begin(scope)
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Replacement{fifo: f, scope: scope, seen: make(map[kube.Key]struct{}), rewound: f.mu.log.rewound(scope)}
}

// Epoch declares that the server's revisions went back: every object of the
// list enters, and earlier versions mean nothing. Call it before any Add.
func (r *Replacement) Epoch() { r.epoch = true }

// Recompare compares objects of the same version by content, after the
// transform, because the schema of their kind may have changed. An object that
// differs becomes an update; an equal one is ignored. Call it before any Add.
func (r *Replacement) Recompare() { r.content = true }

// Unreadable records an item without a readable key. It could be any known
// object, so this list deletes none.
func (r *Replacement) Unreadable() { r.unsaid().all = true }

// Keep records that the list has no usable state of key: the known one stays.
func (r *Replacement) Keep(key kube.Key) {
	r.seen[key] = struct{}{}
	r.unsaid().keys[key] = struct{}{}
}

func (r *Replacement) unsaid() *keeps {
	if r.keeps == nil {
		r.keeps = &keeps{keys: make(map[kube.Key]struct{})}
	}
	return r.keeps
}

// keeps are the keys of which a list says nothing, although it does not have them.
type keeps struct {
	all  bool
	keys map[kube.Key]struct{}
}

func (k *keeps) has(key kube.Key) bool {
	if k == nil {
		return false
	}
	_, ok := k.keys[key]
	return ok || k.all
}

// Add records an object of the list. An object known at this version without a
// waiting delta is only marked as seen. Of two states of an object the later
// one counts.
func (r *Replacement) Add(d Delta) {
	delete(r.undone, d.Key)
	if r.unchanged(d) {
		r.seen[d.Key] = struct{}{}
		return
	}
	d.Type, d.Scope, d.Recompared = Replaced, r.scope, r.content
	d = r.fifo.packed(d)
	r.heap += int64(d.Heap)
	r.deltas.Push(d)
}

// Heap returns the memory of the objects that were collected, in bytes.
func (r *Replacement) Heap() int64 { return r.heap }

// Pack packs the objects that were collected before the informer became compact.
func (r *Replacement) Pack() {
	for at := r.deltas.Front(); at < r.deltas.Back(); at++ {
		d := r.deltas.At(at)
		if d.Object == nil || compact.IsPacked(d.Object) {
			continue
		}
		was := d.Heap
		*d = r.fifo.packed(*d)
		r.heap += int64(d.Heap) - int64(was)
	}
}

// Remove records the end of an object that a streaming list reported before its
// own end. It leaves with the list, in its last known state.
func (r *Replacement) Remove(d Delta) {
	delete(r.undone, d.Key)
	d.Type, d.Scope = Deleted, r.scope
	r.deltas.Push(r.fifo.packed(d))
}

func (r *Replacement) unchanged(d Delta) bool {
	if r.epoch || d.Version == 0 {
		return false
	}
	r.fifo.mu.Lock()
	waits := r.fifo.mu.log.waits(d.Key)
	r.fifo.mu.Unlock()
	k, held := r.fifo.known.knownAs(d.Key, r.scope)
	if !r.rewound && (d.Version < k.Version || d.Version == k.Version && d.UID != k.UID) {
		if r.undone == nil {
			r.undone = make(map[kube.Key]kube.Version)
		}
		r.undone[d.Key] = k.Version
	}
	if waits {
		return false
	}
	// An own write ahead of the scope enters in any case: if the batch of the
	// list does not have it, the list lacks it.
	if !held || k.Ahead || k.UID != d.UID || k.Version != d.Version {
		return false
	}
	switch {
	case !r.content:
		return d.Err != nil || !k.Undecodable
	case d.Err != nil:
		return k.Undecodable
	}
	return !k.Undecodable && compact.Alike(k.Object, d.Object)
}

// Undone returns the objects that the list of version v has in an older version
// than was known, although v is not older: a sign that the server's versions
// went back.
func (r *Replacement) Undone(v kube.Version) (keys []kube.Key) {
	for key, known := range r.undone {
		if known <= v {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, kube.CompareKeys)
	return keys
}

// Commit ends the list, which has version v. Objects that the scope held and
// the list lacks are deleted, their final state unknown. Everything enters the
// log as one batch.
func (r *Replacement) Commit(v kube.Version) {
	if r.keeps == nil || !r.keeps.all {
		r.disappeared(v)
	}
	f := r.fifo
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed && !f.mu.log.scope(r.scope).ended {
		f.mu.log.group(r.scope, &r.deltas, v, r.epoch, r.keeps)
		f.woken.Signal()
	}
	r.Abort()
}

func (r *Replacement) disappeared(v kube.Version) {
	// The log is read before the Indexer: a delta applied in between is then in
	// both, not in neither.
	r.fifo.mu.Lock()
	waiting := r.fifo.mu.log.waiting(r.scope)
	r.fifo.mu.Unlock()
	gone := Delta{Type: Deleted, Scope: r.scope, Version: v, FinalStateUnknown: true}
	for key, k := range r.fifo.known.KnownIn(r.scope) {
		if r.has(key) {
			continue
		}
		w, waits := waiting[key]
		if waits && (w.UID == k.UID || w.Version > k.Version) {
			continue // the waiting delta covers its end, or the loop below does
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

// has reports whether the list has the key or reported its end. A first list
// hardly ever asks.
func (r *Replacement) has(key kube.Key) bool {
	if !r.whole {
		for at := r.deltas.Front(); at < r.deltas.Back(); at++ {
			r.seen[r.deltas.At(at).Key] = struct{}{}
		}
		r.whole = true
	}
	_, ok := r.seen[key]
	return ok
}

// Abort drops what was collected, after the list failed halfway.
func (r *Replacement) Abort() { r.deltas, r.seen, r.undone = deque.Deque[Delta]{}, nil, nil }
