// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/pagetable"
)

// waiting is what one handler has not been given yet.
type waiting[T Object] interface {
	// push adds a change, as far as filter sees it. initial: the object was
	// there when the handler joined.
	push(c store.Change[T], filter *store.ScopeSet, initial bool)
	// mark adds a mark behind everything that waits.
	mark()
	// take appends the next events to buf: none when there is nothing, or when
	// the mark is reached. Where buf is empty, the events may be shared with other
	// handlers: nobody changes them.
	take(buf []Event[T]) (events []Event[T], marked bool)
	// begin says that the call for the next of the taken events begins. Until
	// then it counts as waiting.
	begin()
	len() int
	// size is what waits in bytes, and how many updates have merged, of an
	// EveryEvent handler.
	size() (bytes int64, merged uint64)
	// clock says what time it is for what is pushed from now on, in milliseconds;
	// it may wrap.
	clock(now uint32)
	// oldest is the time of the first that waits.
	oldest() (at uint32, ok bool)
}

// backlog is what waits for a level-triggered handler: for each key, in the
// order of first waiting, what the handler was last given and what is now. It
// has an entry for the keys that wait alone: for another key, what was given
// is what the Indexer showed before the change.
type backlog[T Object] struct {
	slots pagetable.Table[pending[T]] // by the slots of the keys in the Indexer
	keys  int                         // that wait
	ring  pending[T]                  // its next is the first to be given, its prev the last
	// free are entries to be used again, one by the next of the other.
	free  *pending[T]
	frees int
	// most is how many keys waited at a time of late; halved is when it was last
	// made less.
	most   int
	halved uint32
	// undecodable: the handler asks for what cannot be decoded.
	undecodable bool
	time        uint32 // in milliseconds, it may wrap
}

// pending is one key that waits, or the mark. There is one per key and handler,
// so it is kept small.
type pending[T Object] struct {
	prev, next *pending[T]
	key        Key
	slot       uint32
	at         uint32 // when it began to wait
	given, now T      // nil: none
	givenUID   types.UID
	nowUID     types.UID
	bad        *spell // nil: decodable before and now, or nobody asks
	hasGiven   bool
	hasNow     bool
	how        manner
}

// spell is a time of a key in quarantine, beside its objects.
type spell struct {
	given, now *Undecodable // nil: it can be decoded, or there is none
}

// manner is a set of what else is known of a pending key.
type manner uint8

const (
	endUnseen manner = 1 << iota // what was given is gone, and its end was not seen
	endLeft                      // or it left the scopes
	isResync
	isRelisted // with isResync: because of a list
	isInitial
	isMark
)

func (m *manner) set(flag manner, on bool) {
	*m &^= flag
	if on {
		*m |= flag
	}
}

func (m manner) has(flag manner) bool { return m&flag != 0 }

func newBacklog[T Object]() *backlog[T] {
	b := &backlog[T]{}
	b.ring.prev, b.ring.next = &b.ring, &b.ring
	return b
}

func (b *backlog[T]) len() int { return b.keys }

func (b *backlog[T]) size() (bytes int64, merged uint64) { return 0, 0 }

func (b *backlog[T]) push(c store.Change[T], filter *store.ScopeSet, initial bool) {
	was, is := c.Before.SeenBy(filter), c.After.SeenBy(filter)
	var wasBad, isBad *Undecodable
	if b.undecodable {
		wasBad, isBad = c.Trouble.SeenBy(filter)
	}
	p := b.slots.Get(c.Slot)
	if p != nil && p.key != c.Key {
		// The slot has passed to another key. What waits of the key before ends
		// with its end, and is given in its turn.
		p = nil
	}
	switch {
	case wasBad == isBad && (!was && !is || was && is && c.Same), c.Resync && p != nil:
		return
	case p == nil:
		p = b.fresh()
		p.key, p.slot, p.at = c.Key, c.Slot, b.time
		p.how.set(isInitial, initial)
		p.how.set(isResync, c.Resync)
		p.how.set(isRelisted, c.Relisted)
		if was {
			p.given, p.givenUID, p.hasGiven = c.Old, c.OldUID, true
		}
		if wasBad != nil {
			p.bad = &spell{given: wasBad}
		}
		b.slots.Set(c.Slot, p)
		b.keys++
		b.most = max(b.most, b.keys)
		b.append(p)
	default:
		p.how.set(isResync, false)
	}
	p.turn(c, is, isBad)
	if p.settled() {
		b.drop(p)
		b.recycle(p)
	}
}

// turn brings p to what c says is now.
func (p *pending[T]) turn(c store.Change[T], is bool, isBad *Undecodable) {
	gone := !is
	if !p.hasGiven {
		gone = gone && isBad == nil
	}
	if uid, ok := p.knew(); ok && c.OldUID == uid && (gone || c.NewUID != c.OldUID) {
		_, unseen := c.End()
		p.how.set(endUnseen, unseen)
		p.how.set(endLeft, c.LeftScope)
	}
	if p.bad == nil && isBad != nil {
		p.bad = &spell{}
	}
	if p.bad != nil {
		p.bad.now = isBad
	}
	p.now, p.nowUID, p.hasNow = c.New, c.NewUID, is
	if !is {
		var none T
		p.now = none
	}
}

// knew is the UID of what the handler was last told of.
func (p *pending[T]) knew() (uid types.UID, ok bool) {
	switch {
	case p.hasGiven:
		return p.givenUID, true
	case p.bad != nil && p.bad.given != nil:
		return p.bad.given.UID, true
	}
	return "", false
}

// settled: there is nothing to give any more.
func (p *pending[T]) settled() bool {
	if p.hasGiven != p.hasNow || p.bad != nil && p.bad.given != p.bad.now {
		return false
	}
	return !p.hasNow || !p.how.has(isResync) && p.givenUID == p.nowUID && any(p.given) == any(p.now)
}

func (b *backlog[T]) append(p *pending[T]) {
	p.prev, p.next = b.ring.prev, &b.ring
	p.prev.next, p.next.prev = p, p
}

func (b *backlog[T]) drop(p *pending[T]) {
	p.prev.next, p.next.prev = p.next, p.prev
	if p.how.has(isMark) {
		return
	}
	b.keys--
	if b.slots.Get(p.slot) == p {
		b.slots.Set(p.slot, nil)
	}
}

const (
	// freshTogether so many entries are made at a time.
	freshTogether = 8
	// Of the entries that have been used, so many are kept for the next burst, and
	// as many more as waited at a time of late, up to freeEntriesAtMost: bursts
	// that follow each other then allocate nothing.
	freeEntries, freeEntriesAtMost = 1024, 32 << 10
	// halvedEvery so many milliseconds at most, what the last burst took counts
	// for half. Time passes only with what is pushed.
	halvedEvery = 1000
)

// fresh is an empty entry.
func (b *backlog[T]) fresh() *pending[T] {
	if b.free == nil {
		more := make([]pending[T], freshTogether)
		for i := range more {
			b.recycle(&more[i])
		}
	}
	p := b.free
	b.free, p.next = p.next, nil
	b.frees--
	return p
}

// recycle takes an entry that nobody looks at any more.
func (b *backlog[T]) recycle(p *pending[T]) {
	*p = pending[T]{next: b.free}
	b.free = p
	b.frees++
	keep := freeEntries + max(b.keys, min(b.most, freeEntriesAtMost))
	for n := 0; n < 2 && b.frees > keep; n++ {
		b.free = b.free.next
		b.frees--
	}
}

func (b *backlog[T]) mark() { b.append(&pending[T]{how: isMark, at: b.time}) }

// begin does nothing: a key no longer waits once it is taken, since what comes
// later is given in a later turn.
func (b *backlog[T]) begin() {}

func (b *backlog[T]) clock(now uint32) {
	b.time = now
	if now-b.halved >= halvedEvery {
		b.most, b.halved = max(b.keys, b.most/2), now
	}
}

func (b *backlog[T]) oldest() (at uint32, ok bool) { return b.ring.next.at, b.ring.next != &b.ring }

func (b *backlog[T]) take(buf []Event[T]) (events []Event[T], marked bool) {
	p := b.ring.next
	if p == &b.ring {
		return buf, false
	}
	b.drop(p)
	if p.how.has(isMark) {
		return buf, true
	}
	events = p.events(buf)
	b.recycle(p)
	return events, false
}

// events is what the handler is told: one event, or two when the object was
// deleted and another has its name, and one more when what is now cannot be
// decoded. Old is what the handler was given, not the last state: whoever it
// named by that is to hear of the end.
func (p *pending[T]) events(buf []Event[T]) []Event[T] {
	var bad spell
	if p.bad != nil {
		bad = *p.bad
	}
	knew, ok := p.knew()
	ended := ok && (!p.hasNow && bad.now == nil || knew != p.nowUID || p.hasGiven && !p.hasNow)
	if ended {
		e := Event[T]{
			Type: Deleted, Key: p.key, Old: p.given,
			FinalStateUnknown: p.how.has(endUnseen), LeftScope: p.how.has(endLeft),
		}
		if !p.hasGiven {
			e.Undecodable = bad.given
		}
		buf = append(buf, e)
	}
	initial := p.how.has(isInitial) && !p.hasGiven
	switch known := p.hasGiven && !ended; {
	case !p.hasNow:
	case !known:
		buf = append(buf, Event[T]{Type: Added, Key: p.key, New: p.now, Initial: initial})
	case bad.now == nil || any(p.given) != any(p.now):
		buf = append(buf, Event[T]{Type: Updated, Key: p.key, Old: p.given, New: p.now, Resync: p.resync(), Relisted: p.relisted(), Healed: p.bad != nil && bad.now == nil})
	}
	if bad.now != nil && (bad.now != bad.given || ended || p.how.has(isResync)) {
		buf = append(buf, Event[T]{
			Type: Undecoded, Key: p.key, Old: p.now, Undecodable: bad.now,
			Initial: initial, Resync: p.resync(), Relisted: p.relisted(),
		})
	}
	return buf
}

// resync and relisted say why the object is given again. A list is the cause
// only where nothing has changed.
func (p *pending[T]) resync() bool { return p.how.has(isResync) && !p.how.has(isRelisted) }

func (p *pending[T]) relisted() bool { return p.how.has(isResync) && p.how.has(isRelisted) }
