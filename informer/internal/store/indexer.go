// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// Indexer holds the objects of one kind by key, the newest version of each.
// Writers take turns and change a whole batch under one lock. Readers take a
// snapshot under the same lock, which is cheap, and walk it without. Make one
// with NewIndexer. Safe for concurrent use.
type Indexer struct {
	Kind schema.GroupVersionKind
	// Heap is the memory of the objects, in bytes, as far as it is known. Read
	// it without a lock.
	Heap atomic.Int64
	// turn is held by a writer from start to end, also while it calls index
	// functions, which may read. mu is held only for the change itself.
	turn struct {
		sync.Mutex
		values  [][]string // buffer of evaluateLocked
		changes []Change   // buffer for the results of Apply and Observe
	}
	mu struct {
		sync.RWMutex
		at         map[kube.Key]uint32 // positions in rows
		most       int                 // largest length of at since it was made
		rows       vector[Row]
		slots      slots // of the rows
		bytes      int64 // of the rows
		packed     int64 // of the rows, in memory
		sets       scopeSets
		indices    []*index                       // the first is by namespace
		quarantine map[kube.Key]*kube.Undecodable // of rows that are undecodable
		originals  map[kube.Key]kube.Object       // of those that the transform refuses
		reached    []kube.Version                 // by scope
		tombs      ageing[types.UID, tombstone]
		floors     ageing[kube.Key, kube.Version] // newest known versions of deleted keys
		awaited    ageing[kube.Key, kube.Version]
		ahead      ageing[kube.Key, ahead] // own writes that a scope may not have reached
		waiters    map[kube.Key][]*waiter
		passed     []func()
		refused    uint64
		panics     uint64
	}
}

// NewIndexer returns an empty Indexer.
func NewIndexer(kind schema.GroupVersionKind) *Indexer {
	x := &Indexer{Kind: kind}
	x.mu.at = make(map[kube.Key]uint32)
	x.mu.indices = []*index{newIndex("", nil)}
	x.mu.quarantine = make(map[kube.Key]*kube.Undecodable)
	x.mu.originals = make(map[kube.Key]kube.Object)
	x.mu.tombs.limit = tombstoneLimit
	x.mu.floors.limit = tombstoneLimit
	x.mu.awaited.limit = awaitLimit
	x.mu.ahead.limit = math.MaxInt // limited by the number of objects
	x.mu.waiters = make(map[kube.Key][]*waiter)
	return x
}

// Apply applies a whole batch under one lock and returns the changes in order.
// The error names index functions that panicked; the batch is applied
// regardless. Afterwards the caller calls the functions that Passed returns.
// The changes are valid until the next Apply or Observe; the caller clears them
// when done.
func (x *Indexer) Apply(b Batch) ([]Change, error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	verdicts := x.recompare(b.Deltas)
	values, err := x.evaluateLocked(len(b.Deltas), func(i int) (key kube.Key, obj kube.Object, ok bool) {
		d := &b.Deltas[i]
		return d.Key, d.Object, d.Err == nil && d.Type != Deleted && d.Type != Sync
	})
	defer clear(values)
	changes := x.roomLocked(len(b.Deltas))

	x.mu.Lock()
	defer x.mu.Unlock()
	for _, scope := range b.Epochs {
		x.epochLocked(scope)
	}
	var before []kube.Version
	if x.mu.ahead.len() > 0 {
		before = slices.Clone(x.mu.reached)
	}
	x.growLocked(len(b.Deltas))
	per := len(x.mu.indices) - 1
	for i := range b.Deltas {
		s := ofDelta(&b.Deltas[i], b.listed(b.Deltas[i].Scope))
		if verdicts != nil {
			s = s.withVerdict(verdicts[i])
		}
		s.values = values[i*per : (i+1)*per]
		changes = x.takeLocked(&s, changes)
	}
	for _, r := range b.Reached {
		if r.List != 0 && x.mu.ahead.len() > 0 {
			for s := range x.unlistedLocked(r, b.Deltas, before) {
				changes = x.takeLocked(&s, changes)
			}
		}
	}
	for _, r := range b.Reached {
		x.reachLocked(r.Scope, r.Version)
	}
	if len(b.Reached) > 0 {
		x.sweepLocked()
	}
	return changes, err
}

// listed returns the version of the list of scope that ends in the batch; 0:
// none.
func (b Batch) listed(scope base.ScopeID) kube.Version {
	for _, r := range b.Reached {
		if r.Scope == scope {
			return r.List
		}
	}
	return 0
}

// Observe applies the answer to an own write, by the same rules. hidden: a newer state of the
// object is known in another scope, and only the server can tell whether one of In has it.
func (x *Indexer) Observe(w Observed) (changes []Change, hidden bool, err error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	s := ofWrite(w)
	values, err := x.evaluateLocked(1, func(int) (key kube.Key, obj kube.Object, ok bool) { return s.key, s.object, s.kind == stored && !s.bad })
	defer clear(values)
	s.values = values

	changes = x.roomLocked(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	changes = x.takeLocked(&s, changes)
	return changes, s.hidden, err
}

// roomLocked returns an empty slice for n changes, reusing memory.
func (x *Indexer) roomLocked(n int) []Change {
	if n > BatchLimit {
		return make([]Change, 0, n)
	}
	if cap(x.turn.changes) < n {
		x.turn.changes = make([]Change, 0, max(n, min(2*cap(x.turn.changes), BatchLimit)))
	}
	return x.turn.changes[:0]
}

// growLocked makes room in the map for n more keys at once, if they are many.
func (x *Indexer) growLocked(n int) {
	if n <= BatchLimit || n <= 4*len(x.mu.at) {
		return
	}
	at := make(map[kube.Key]uint32, len(x.mu.at)+n)
	maps.Copy(at, x.mu.at)
	x.mu.at, x.mu.most = at, len(x.mu.at)+n
}

// takeLocked applies one step and appends what it changed.
func (x *Indexer) takeLocked(s *step, changes []Change) []Change {
	if c, ok := x.stepLocked(s); ok {
		changes = append(changes, c)
	}
	if (s.kind == seen || s.kind == ended) && s.list == 0 && !s.missing {
		x.reachLocked(s.scope, s.version)
	}
	return changes
}

// stepLocked applies the decision of the rules for one key. ok: c is a change
// to deliver.
func (x *Indexer) stepLocked(s *step) (c Change, ok bool) {
	var h entryState
	var r Row
	at, held := x.mu.at[s.key]
	if held {
		r = *x.mu.rows.At(int(at))
		h = r.state()
	}
	if s.kind == seen {
		s.alone = x.mu.sets.alone(s.scope)
		s.compareLocked(&r)
	}
	o := decide(h, s.input, knowledge{reached: x.mu.reached, floor: x.mu.floors.get(s.key), tomb: x.mu.tombs.get(s.uid), ahead: x.mu.ahead.get(s.key)})
	o.next.scopes, o.next.own = x.mu.sets.intern(o.next.scopes), x.mu.sets.intern(o.next.own)
	x.bookLocked(s, o)
	s.hidden = o.hidden

	c = Change{Key: s.key, Slot: r.slot, Old: r.Object, OldUID: h.uid, Before: r.shown(), Bytes: r.bytes}
	var was *kube.Undecodable
	if h.bad {
		was = x.mu.quarantine[s.key]
	}
	if s.kind == again {
		if h.bad {
			c.Trouble = &Trouble{Before: h.scopes, After: h.scopes, Was: was, Is: was}
		}
		c.New, c.NewUID, c.After, c.Resync, c.Handler = r.Object, h.uid, c.Before, true, s.handler
		return c, h.scopes.Has(s.scope) && c.Before != nil
	}
	if o.next.scopes == nil {
		if held {
			c.New, c.NewUID = r.Object, h.uid
			if s.kind == ended && !base.IsNil(s.object) {
				c.New = s.object
			}
			c.finalStateUnknown, c.LeftScope = s.missing || s.kind == seen, o.left
			x.removeLocked(s.key)
		}
	} else {
		if !held {
			at = x.addLocked(s.key)
			c.Slot = x.mu.rows.At(int(at)).slot
		}
		c.New, c.NewUID, c.After, c.Same = x.putLocked(s, o, at)
		if c.Same && c.After != c.Before && s.kind == ended && !base.IsNil(s.object) {
			c.New = s.object
		}
	}
	x.wakeLocked(s.key, h, o.next)
	if h.bad || o.next.bad {
		c.Trouble = &Trouble{Before: h.scopes, After: o.next.scopes, Was: was, Is: x.mu.quarantine[s.key]}
		if was != c.Trouble.Is || h.scopes != o.next.scopes {
			return c, true
		}
	}
	if c.Before == nil && c.After == nil || c.Same && c.Before == c.After {
		return c, false
	}
	return c, true
}

// bookLocked records what the rules remember besides the objects.
func (x *Indexer) bookLocked(s *step, o decision) {
	switch {
	case o.buried == "":
	case o.tombstone == tombstone{}:
		x.mu.tombs.drop(o.buried)
	default:
		x.mu.tombs.set(o.buried, o.tombstone)
	}
	if o.floor > x.mu.floors.get(s.key) {
		x.mu.floors.set(s.key, o.floor)
	}
	if o.refuse {
		x.mu.refused++
	}
	switch {
	case s.kind == stored && o.next.own != nil:
		x.mu.ahead.set(s.key, ahead{o.next.version, o.next.own})
	case o.next.scopes == nil && x.mu.ahead.len() > 0:
		x.mu.ahead.drop(s.key)
	}
	if o.await != 0 {
		x.mu.awaited.set(s.key, max(o.await, x.mu.awaited.get(s.key)))
	} else if x.mu.awaited.len() > 0 {
		if v := x.mu.awaited.get(s.key); v != 0 && (o.next.scopes == nil || o.next.version >= v) {
			x.mu.awaited.drop(s.key)
		}
	}
}

// addLocked adds a row for key and returns its position.
func (x *Indexer) addLocked(key kube.Key) uint32 {
	at := uint32(x.mu.rows.Len())
	x.mu.at[key] = at
	x.mu.most = max(x.mu.most, len(x.mu.at))
	x.mu.rows.Append(Row{Key: key, slot: x.mu.slots.take(), blank: true})
	return at
}

// putLocked stores the decision o in the row at a position, and returns what
// the row then shows.
func (x *Indexer) putLocked(s *step, o decision, at uint32) (obj kube.Object, uid types.UID, shown *ScopeSet, same bool) {
	r := x.mu.rows.Edit(int(at))
	before := r.Object
	defer func() { x.mu.packed += compact.Size(r.Object) - compact.Size(before) }()
	other := r.UID != o.next.uid
	r.UID, r.Version, r.Scopes = o.next.uid, o.next.version, o.next.scopes
	r.own, r.Undecodable = o.next.own, o.next.bad
	if s.bytes != 0 && s.version == o.next.version { // the echo of an own write has the size, the answer does not
		x.mu.bytes += int64(s.bytes) - int64(r.bytes)
		r.bytes = s.bytes
	}
	switch {
	case s.heap != 0 && s.version == o.next.version:
		r.count(s.heap, &x.Heap)
	case r.heap == 0 && o.take: // an own write, until its echo
		r.count(uint32(x.Heap.Load()/int64(x.mu.rows.Len())), &x.Heap)
	}
	if o.take && !r.Undecodable {
		r.Object, r.blank, r.refused = s.object, false, false
		delete(x.mu.quarantine, s.key)
		delete(x.mu.originals, s.key)
		x.shelveLocked(at, s.key.Namespace, s.values)
	} else if o.take {
		r.refused = !base.IsNil(s.original)
		x.mu.quarantine[s.key] = x.undecodable(s, x.mu.quarantine[s.key], r, other)
		delete(x.mu.originals, s.key)
		if r.refused {
			x.mu.originals[s.key] = s.original
		}
		if other && !r.blank {
			// The shown object is gone, and there is none to replace it.
			obj, uid = r.Object, r.UID
			var none kube.Object
			r.Object, r.blank = none, true
			x.unshelveLocked(at)
			r.shelves = nil
			return obj, uid, nil, false
		}
	}
	return r.Object, r.UID, r.shown(), !o.take || r.Undecodable
}

// removeLocked removes a row; the last row takes its place.
func (x *Indexer) removeLocked(key kube.Key) {
	at := x.mu.at[key]
	x.unshelveLocked(at)
	delete(x.mu.at, key)
	delete(x.mu.quarantine, key)
	delete(x.mu.originals, key)
	x.mu.slots.giveBack(x.mu.rows.At(int(at)).slot)
	x.mu.bytes -= int64(x.mu.rows.At(int(at)).bytes)
	x.Heap.Add(-int64(x.mu.rows.At(int(at)).heap))
	x.mu.packed -= compact.Size(x.mu.rows.At(int(at)).Object)
	moved := x.mu.rows.Pop()
	if int(at) < x.mu.rows.Len() {
		*x.mu.rows.Edit(int(at)) = moved
		x.mu.at[moved.Key] = at
		for _, s := range moved.shelves {
			*s.bucket.rows.Edit(int(s.at)) = at
		}
	}
	if x.mu.most > 1024 && len(x.mu.at) < x.mu.most/4 {
		// A map never shrinks: only a new one frees memory.
		at := make(map[kube.Key]uint32, len(x.mu.at))
		for k, v := range x.mu.at {
			at[k] = v
		}
		x.mu.at, x.mu.most = at, len(at)
	}
}

// Get returns the row of key. With an error, obj is the last state that the
// transform accepted.
func (x *Indexer) Get(key kube.Key) (obj kube.Object, scopes *ScopeSet, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.mu.at[key]
	if !ok {
		return obj, nil, nil
	}
	r := x.mu.rows.At(int(at))
	if r.Readable() {
		obj = r.Object
	}
	if r.Undecodable {
		return obj, r.Scopes, x.mu.quarantine[key].Err
	}
	return obj, r.Scopes, nil
}

// View returns all rows as they are now.
func (x *Indexer) View() vectorView[Row] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.mu.rows.View()
}

// Len returns the number of objects, including undecodable ones.
func (x *Indexer) Len() int { return x.View().Len() }

// ObjectsIn returns the objects that a scope shows at the time of the call.
func (x *Indexer) ObjectsIn(scope base.ScopeID) iter.Seq2[kube.Key, known] {
	rows := x.View()
	return func(yield func(kube.Key, known) bool) {
		for r := range rows.All() {
			if r.shown().Has(scope) && !yield(r.Key, known{Object: r.Object, UID: r.UID, Version: r.Version}) {
				return
			}
		}
	}
}

func (x *Indexer) KnownIn(scope base.ScopeID) iter.Seq2[kube.Key, known] {
	rows := x.View()
	return func(yield func(kube.Key, known) bool) {
		for r := range rows.All() {
			if r.Scopes.Has(scope) && !yield(r.Key, known{Object: r.Object, UID: r.UID, Version: r.Version, Undecodable: r.Undecodable}) {
				return
			}
		}
	}
}

func (x *Indexer) knownAs(key kube.Key, scope base.ScopeID) (k known, held bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.mu.at[key]
	if !ok {
		return k, false
	}
	r := x.mu.rows.At(int(at))
	k = known{Key: r.Key, Object: r.Object, UID: r.UID, Version: r.Version, Undecodable: r.Undecodable}
	a := x.mu.ahead.get(key)
	k.Ahead = a.in.Has(scope) && a.version > knowledge{reached: x.mu.reached}.of(scope)
	return k, r.Scopes.Has(scope)
}

// Holds reports whether obj is the very object in the row of its key, or the
// one that is packed there.
func (x *Indexer) Holds(obj kube.Object) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, ok := x.mu.at[kube.KeyOf(obj)]
	return ok && compact.Is(x.mu.rows.At(int(at)).Object, obj)
}

// Restore replaces changed by truth, if key still holds changed. A packed object
// is decoded again instead.
func (x *Indexer) Restore(key kube.Key, changed, truth kube.Object) bool {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.mu.at[key]
	if !ok || !compact.Is(x.mu.rows.At(int(at)).Object, changed) {
		return false
	}
	if e, ok := x.mu.rows.At(int(at)).Object.(*compact.Entry); ok {
		return e.Forget(changed)
	}
	x.mu.rows.Edit(int(at)).Object = truth
	return true
}
