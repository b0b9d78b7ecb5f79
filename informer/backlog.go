// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/pagetable"
)

// waiting is what one handler has not been given yet.
type waiting[T Object] interface {
	// push adds a change, as far as filter sees it. initial: the object was
	// there when the handler joined.
	push(c change[T], filter *scopeSet, initial bool)
	// mark adds a mark behind everything that waits.
	mark()
	// take appends the next events to buf: none when there is nothing, or when
	// the mark is reached.
	take(buf []Event[T]) (events []Event[T], marked bool)
	len() int
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
}

// pending is one key that waits, or the mark.
type pending[T Object] struct {
	prev, next *pending[T]
	key        Key
	slot       uint32
	given, now T // nil: none
	givenUID   types.UID
	nowUID     types.UID
	hasGiven   bool
	hasNow     bool
	unknown    bool // what was given is gone, and its end was not seen
	left       bool // or it left the scopes
	resync     bool
	initial    bool
	isMark     bool
}

func newBacklog[T Object]() *backlog[T] {
	b := &backlog[T]{}
	b.ring.prev, b.ring.next = &b.ring, &b.ring
	return b
}

func (b *backlog[T]) len() int { return b.keys }

func (b *backlog[T]) push(c change[T], filter *scopeSet, initial bool) {
	was, is := c.before.seenBy(filter), c.after.seenBy(filter)
	p := b.slots.Get(c.slot)
	if p != nil && p.key != c.key {
		// The slot has passed to another key. What waits of the key before ends
		// with its end, and is given in its turn.
		p = nil
	}
	switch {
	case !was && !is, was && is && c.same, c.resync && p != nil:
		return
	case p == nil:
		p = b.fresh()
		p.key, p.slot, p.initial, p.resync = c.key, c.slot, initial, c.resync
		if was {
			p.given, p.givenUID, p.hasGiven = c.old, c.oldUID, true
		}
		b.slots.Set(c.slot, p)
		b.keys++
		b.append(p)
	default:
		p.resync = false
	}
	p.turn(c, is)
	if p.settled() {
		b.drop(p)
		b.recycle(p)
	}
}

// turn brings p to what c says is now.
func (p *pending[T]) turn(c change[T], is bool) {
	if p.hasGiven && c.oldUID == p.givenUID && (!is || c.newUID != c.oldUID) {
		_, p.unknown = c.end()
		p.left = c.leftScope
	}
	p.now, p.nowUID, p.hasNow = c.new, c.newUID, is
	if !is {
		var none T
		p.now = none
	}
}

// settled: there is nothing to give any more.
func (p *pending[T]) settled() bool {
	if p.hasGiven != p.hasNow {
		return false
	}
	return !p.hasNow || !p.resync && p.givenUID == p.nowUID && any(p.given) == any(p.now)
}

func (b *backlog[T]) append(p *pending[T]) {
	p.prev, p.next = b.ring.prev, &b.ring
	p.prev.next, p.next.prev = p, p
}

func (b *backlog[T]) drop(p *pending[T]) {
	p.prev.next, p.next.prev = p.next, p.prev
	if p.isMark {
		return
	}
	b.keys--
	if b.slots.Get(p.slot) == p {
		b.slots.Set(p.slot, nil)
	}
}

const (
	// freshTogether so many entries are made at a time. Of those that have been
	// used, as many are kept as wait, and freeEntries for the next burst.
	freshTogether, freeEntries = 8, 1024
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
	for n := 0; n < 2 && b.frees > freeEntries+b.keys; n++ {
		b.free = b.free.next
		b.frees--
	}
}

func (b *backlog[T]) mark() { b.append(&pending[T]{isMark: true}) }

func (b *backlog[T]) take(buf []Event[T]) (events []Event[T], marked bool) {
	p := b.ring.next
	if p == &b.ring {
		return buf, false
	}
	b.drop(p)
	if p.isMark {
		return buf, true
	}
	events = p.events(buf)
	b.recycle(p)
	return events, false
}

// events is what the handler is told: one event, or two when the object was
// deleted and another has its name. Old is what the handler was given, not the
// last state: whoever it named by that is to hear of the end.
func (p *pending[T]) events(buf []Event[T]) []Event[T] {
	if p.hasGiven && p.hasNow && p.givenUID == p.nowUID {
		return append(buf, Event[T]{Type: EventUpdated, Key: p.key, Old: p.given, New: p.now, Resync: p.resync})
	}
	if p.hasGiven {
		buf = append(buf, Event[T]{
			Type: EventDeleted, Key: p.key, Old: p.given, FinalStateUnknown: p.unknown, LeftScope: p.left,
		})
	}
	if p.hasNow {
		buf = append(buf, Event[T]{Type: EventAdded, Key: p.key, New: p.now, Initial: p.initial && !p.hasGiven})
	}
	return buf
}
