// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// Backlog holds the undelivered events of one handler.
type Backlog interface {
	// Push adds a change as filter sees it. initial: the object existed when
	// the handler joined.
	Push(c store.Change, filter *store.ScopeSet, initial bool)
	// Join adds the events that handlers of every event share instead of its
	// changes, as filter sees them, if that is possible.
	Join(shared *Shared, filter *store.ScopeSet, initial bool) bool
	// Mark adds a mark behind all waiting events.
	Mark()
	// Take appends the next events to buf: none if nothing waits or the mark is
	// reached. If buf is empty, the result may be shared with other handlers
	// and must not be modified.
	Take(buf []kube.Event[kube.Object]) (events []kube.Event[kube.Object], marked bool)
	// Begin records that the call for the next taken event begins. Until then
	// the event counts as waiting.
	Begin()
	Len() int
	// Size returns the waiting bytes and the number of merged updates, of an
	// EveryEvent handler.
	Size() (bytes int64, merged uint64)
	// Clock sets the time of later pushes, in milliseconds; it may wrap.
	Clock(now uint32)
	// Oldest returns the time of the first waiting event.
	Oldest() (at uint32, ok bool)
}

// NewBacklog returns a backlog that merges per key, or has every event.
func NewBacklog(opts Options) Backlog {
	if opts.EveryEvent {
		return newEventStream(opts)
	}
	b := newBacklog()
	b.undecodable = opts.Undecodable
	return b
}

// backlog is the queue of a level-triggered handler. For each waiting key, in
// order of arrival, it holds what the handler was last given and the present
// state. It has no entry for other keys: there, what the handler was given is
// what the Indexer showed before the change.
type backlog struct {
	slots pageTable[pending] // by slot of the key in the Indexer
	keys  int                // waiting
	ring  pending            // next is the first to deliver, prev the last
	// free are unused entries, linked by next.
	free  *pending
	frees int
	// most is the recent maximum of keys; halved is when it was last reduced.
	most   int
	halved uint32
	// undecodable: the handler wants undecodable objects.
	undecodable bool
	time        uint32 // in milliseconds; it may wrap
}

// pending is a waiting key, or the mark. There is one per key and handler, so
// it must be small.
type pending struct {
	prev, next *pending
	key        kube.Key
	slot       uint32
	at         uint32      // when it began to wait
	given, now kube.Object // nil: none
	givenUID   types.UID
	nowUID     types.UID
	bad        *quarantineChange // nil: decodable before and now, or the handler does not want them
	hasGiven   bool
	hasNow     bool
	flags      pendingFlags
}

// quarantineChange is the quarantine state of a key.
type quarantineChange struct {
	given, now *kube.Undecodable // nil: decodable, or no object
}

// pendingFlags is a set of flags of a pending key.
type pendingFlags uint8

const (
	endUnseen pendingFlags = 1 << iota // the given object is gone, its end unseen
	endLeft                            // the given object left the scopes
	isResync
	isRelisted // with isResync: because of a list
	isInitial
	isMark
	isOwn // each change since the handler was given the object
)

func (m *pendingFlags) set(flag pendingFlags, on bool) {
	*m &^= flag
	if on {
		*m |= flag
	}
}

func (m pendingFlags) has(flag pendingFlags) bool { return m&flag != 0 }

func newBacklog() *backlog {
	b := &backlog{}
	b.ring.prev, b.ring.next = &b.ring, &b.ring
	return b
}

func (b *backlog) Len() int { return b.keys }

func (b *backlog) Size() (bytes int64, merged uint64) { return 0, 0 }

func (b *backlog) Push(c store.Change, filter *store.ScopeSet, initial bool) {
	was, is := c.Before.SeenBy(filter), c.After.SeenBy(filter)
	var wasBad, isBad *kube.Undecodable
	if b.undecodable {
		wasBad, isBad = c.Trouble.SeenBy(filter)
	}
	p := b.slots.Get(c.Slot)
	if p != nil && p.key != c.Key {
		// The slot has passed to another key. The entry of the previous key
		// holds its end and is delivered in its turn.
		p = nil
	}
	switch {
	case wasBad == isBad && (!was && !is || was && is && c.Same), c.Resync && p != nil:
		return
	case p == nil:
		p = b.fresh()
		p.key, p.slot, p.at = c.Key, c.Slot, b.time
		p.flags.set(isInitial, initial)
		p.flags.set(isResync, c.Resync)
		p.flags.set(isRelisted, c.Relisted)
		p.flags.set(isOwn, c.Own)
		if was {
			p.given, p.givenUID, p.hasGiven = c.Old, c.OldUID, true
		}
		if wasBad != nil {
			p.bad = &quarantineChange{given: wasBad}
		}
		b.slots.Set(c.Slot, p)
		b.keys++
		b.most = max(b.most, b.keys)
		b.append(p)
	default:
		p.flags.set(isResync, false)
		p.flags.set(isOwn, c.Own && p.flags.has(isOwn))
	}
	p.turn(c, is, isBad)
	if p.delivered() {
		b.drop(p)
		b.recycle(p)
	}
}

// Join reports false: a key has a state of its own for each handler.
func (b *backlog) Join(*Shared, *store.ScopeSet, bool) bool { return false }

// turn updates p to the present state in c.
func (p *pending) turn(c store.Change, is bool, isBad *kube.Undecodable) {
	gone := !is
	if !p.hasGiven {
		gone = gone && isBad == nil
	}
	if uid, ok := p.knew(); ok && c.OldUID == uid && (gone || c.NewUID != c.OldUID) {
		_, unseen := c.End()
		p.flags.set(endUnseen, unseen)
		p.flags.set(endLeft, c.LeftScope)
	}
	if p.bad == nil && isBad != nil {
		p.bad = &quarantineChange{}
	}
	if p.bad != nil {
		p.bad.now = isBad
	}
	p.now, p.nowUID, p.hasNow = c.New, c.NewUID, is
	if !is {
		var none kube.Object
		p.now = none
	}
}

// knew returns the UID of the object last delivered to the handler.
func (p *pending) knew() (uid types.UID, ok bool) {
	switch {
	case p.hasGiven:
		return p.givenUID, true
	case p.bad != nil && p.bad.given != nil:
		return p.bad.given.UID, true
	}
	return "", false
}

// delivered reports whether there is nothing left to deliver.
func (p *pending) delivered() bool {
	if p.hasGiven != p.hasNow || p.bad != nil && p.bad.given != p.bad.now {
		return false
	}
	return !p.hasNow || !p.flags.has(isResync) && p.givenUID == p.nowUID && any(p.given) == any(p.now)
}

func (b *backlog) append(p *pending) {
	p.prev, p.next = b.ring.prev, &b.ring
	p.prev.next, p.next.prev = p, p
}

func (b *backlog) drop(p *pending) {
	p.prev.next, p.next.prev = p.next, p.prev
	if p.flags.has(isMark) {
		return
	}
	b.keys--
	if b.slots.Get(p.slot) == p {
		b.slots.Set(p.slot, nil)
	}
}

const (
	// freshTogether is how many entries are allocated at a time.
	freshTogether = 8
	// freeEntries unused entries are kept for the next burst, plus the recent
	// maximum of waiting keys, up to freeEntriesAtMost, so that successive
	// bursts allocate nothing.
	freeEntries, freeEntriesAtMost = 1024, 32 << 10
	// halvedEvery is how often, in milliseconds, the recent maximum is halved.
	// Time advances only with pushes.
	halvedEvery = 1000
)

// fresh returns an empty entry.
func (b *backlog) fresh() *pending {
	if b.free == nil {
		more := make([]pending, freshTogether)
		for i := range more {
			b.recycle(&more[i])
		}
	}
	p := b.free
	b.free, p.next = p.next, nil
	b.frees--
	return p
}

// recycle frees an entry.
func (b *backlog) recycle(p *pending) {
	*p = pending{next: b.free}
	b.free = p
	b.frees++
	keep := freeEntries + max(b.keys, min(b.most, freeEntriesAtMost))
	for n := 0; n < 2 && b.frees > keep; n++ {
		b.free = b.free.next
		b.frees--
	}
}

func (b *backlog) Mark() { b.append(&pending{flags: isMark, at: b.time}) }

// Begin does nothing: a key stops waiting once it is taken, and later changes
// wait for a later turn.
func (b *backlog) Begin() {}

func (b *backlog) Clock(now uint32) {
	b.time = now
	if now-b.halved >= halvedEvery {
		b.most, b.halved = max(b.keys, b.most/2), now
	}
}

func (b *backlog) Oldest() (at uint32, ok bool) { return b.ring.next.at, b.ring.next != &b.ring }

func (b *backlog) Take(buf []kube.Event[kube.Object]) (events []kube.Event[kube.Object], marked bool) {
	p := b.ring.next
	if p == &b.ring {
		return buf, false
	}
	b.drop(p)
	if p.flags.has(isMark) {
		return buf, true
	}
	events = p.events(buf)
	b.recycle(p)
	return events, false
}

// events returns what the handler receives: one event; two if the object was
// deleted and another has its name; one more if the present state is
// undecodable. Old is what the handler was given, not the last state, so that
// code which derived keys from it sees its end.
func (p *pending) events(buf []kube.Event[kube.Object]) []kube.Event[kube.Object] {
	var bad quarantineChange
	if p.bad != nil {
		bad = *p.bad
	}
	knew, ok := p.knew()
	own := p.flags.has(isOwn)
	ended := ok && (!p.hasNow && bad.now == nil || knew != p.nowUID || p.hasGiven && !p.hasNow)
	if ended {
		e := kube.Event[kube.Object]{
			Type: kube.Deleted, Key: p.key, Old: p.given,
			FinalStateUnknown: p.flags.has(endUnseen), LeftScope: p.flags.has(endLeft), Own: own,
		}
		if !p.hasGiven {
			e.Undecodable = bad.given
		}
		buf = append(buf, e)
	}
	initial := p.flags.has(isInitial) && !p.hasGiven
	switch known := p.hasGiven && !ended; {
	case !p.hasNow:
	case !known:
		buf = append(buf, kube.Event[kube.Object]{Type: kube.Added, Key: p.key, New: p.now, Initial: initial, Own: own})
	case bad.now == nil || any(p.given) != any(p.now):
		buf = append(buf, kube.Event[kube.Object]{Type: kube.Updated, Key: p.key, Old: p.given, New: p.now, Resync: p.resync(), Relisted: p.relisted(), Healed: p.bad != nil && bad.now == nil, Own: own})
	}
	if bad.now != nil && (bad.now != bad.given || ended || p.flags.has(isResync)) {
		buf = append(buf, kube.Event[kube.Object]{
			Type: kube.Undecoded, Key: p.key, Old: p.now, Undecodable: bad.now,
			Initial: initial, Resync: p.resync(), Relisted: p.relisted(),
		})
	}
	return buf
}

// resync and relisted report why the object is redelivered. A list is the
// reason only if nothing has changed.
func (p *pending) resync() bool { return p.flags.has(isResync) && !p.flags.has(isRelisted) }

func (p *pending) relisted() bool { return p.flags.has(isResync) && p.flags.has(isRelisted) }
