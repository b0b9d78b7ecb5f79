// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/store"
)

const (
	// partEvents is how many events a part has at most.
	partEvents = 128
	// firstEvents is the room of the first part of a burst.
	firstEvents = 8
	// sharedFrom so many changes on, a batch is turned into events once for all
	// handlers. Below, copies cost less than a part of its own.
	sharedFrom = 8
)

// part is a stretch of an eventStream that is given in one go, or the mark.
type part[T Object] struct {
	events []Event[T]
	costs  []cost // of the events
	// shared: other streams have the same events, which nobody changes.
	shared bool
	isMark bool
	at     uint32 // when a shared part, or the mark, began to wait
}

// cost is what one event holds while it waits, and since when it does.
type cost struct{ bytes, at uint32 }

func (p *part[T]) since(i int) uint32 {
	if p.shared || p.isMark {
		return p.at
	}
	return p.costs[i].at
}

// open is the part to which the next event is added.
func (s *eventStream[T]) open() *part[T] {
	room := firstEvents
	if s.parts.Len() > 0 {
		p := s.parts.At(s.parts.Back() - 1)
		if !p.shared && !p.isMark {
			if len(p.events) < partEvents {
				return p
			}
			room = partEvents
		}
	}
	next := s.spare
	s.spare = part[T]{}
	if cap(next.events) == 0 {
		next = part[T]{events: make([]Event[T], 0, room), costs: make([]cost, 0, room)}
	}
	return s.parts.At(s.parts.Push(next))
}

func (s *eventStream[T]) mark() { s.parts.Push(part[T]{isMark: true, at: s.time}) }

func (s *eventStream[T]) oldest() (at uint32, ok bool) {
	switch {
	case s.begun < len(s.taken.events):
		return s.taken.since(s.begun), true
	case s.parts.Len() > 0:
		return s.parts.At(s.parts.Front()).since(0), true
	}
	return 0, false
}

// take gives a whole part, as it is: nobody may change it. What was taken before
// has been given.
func (s *eventStream[T]) take(buf []Event[T]) (events []Event[T], marked bool) {
	for s.begun < len(s.taken.events) {
		s.begin()
	}
	s.putBack(s.taken)
	s.taken, s.begun = part[T]{}, 0
	if s.parts.Len() == 0 {
		s.update = nil
		return buf, false
	}
	p := s.parts.Pop()
	if p.isMark {
		return buf, true
	}
	s.taken = p
	if len(buf) == 0 {
		return p.events, false
	}
	return append(buf, p.events...), false
}

// begin notes that the call for the next of the taken events begins.
func (s *eventStream[T]) begin() {
	if s.begun < len(s.taken.events) {
		s.count--
		s.bytes -= store.EventBytes + int64(s.taken.costs[s.begun].bytes)
		s.begun++
	}
}

// putBack keeps the memory of a part that nobody looks at any more. A stream
// that stands empty keeps one at most.
func (s *eventStream[T]) putBack(p part[T]) {
	if p.shared || cap(p.events) <= cap(s.spare.events) {
		return
	}
	clear(p.events)
	s.spare = part[T]{events: p.events[:0], costs: p.costs[:0]}
}

// join adds parts that other streams have too, if they fit below the bound, and
// nothing that waits may merge any more.
func (s *eventStream[T]) join(c *common[T]) bool {
	if s.update != nil || s.limit >= 0 && s.bytes+c.stream.bytes > s.bound() {
		return false
	}
	for i := c.stream.parts.Front(); i < c.stream.parts.Back(); i++ {
		p := *c.stream.parts.At(i)
		p.shared, p.at = true, s.time
		s.parts.Push(p)
	}
	s.count += c.stream.count
	s.bytes += c.stream.bytes
	return true
}

// sharing turns the changes of a batch into events once for all handlers of
// every event that see the same of them.
type sharing[T Object] struct {
	changes []store.Change[T]
	merged  uint64 // updates that went into an earlier one before they came here
	off     bool   // the changes are few, or not for all
	made    []*common[T]
}

// common are the events of a batch for handlers that see the same.
type common[T Object] struct {
	filter  *store.ScopeSet
	initial bool
	stream  eventStream[T]
}

// share is for so many handlers of every event. Nil: there is nothing to share.
func share[T Object](changes []store.Change[T], handlers int, merged uint64) *sharing[T] {
	off := handlers < 2 || len(changes) < sharedFrom || slices.ContainsFunc(changes, func(c store.Change[T]) bool { return c.Resync })
	if off && merged == 0 {
		return nil
	}
	return &sharing[T]{changes: changes, merged: merged, off: off}
}

// events are those of the batch for a handler that sees through filter; nil:
// each has its own.
func (s *sharing[T]) events(filter *store.ScopeSet, undecodable, initial bool) *common[T] {
	if s == nil || s.off {
		return nil
	}
	for _, c := range s.made {
		if c.filter.Equal(filter) && c.initial == initial && c.stream.undecodable == undecodable {
			return c
		}
	}
	c := &common[T]{filter: filter, initial: initial, stream: eventStream[T]{limit: -1, undecodable: undecodable}}
	for i := range s.changes {
		c.stream.push(s.changes[i], filter, initial)
	}
	s.made = append(s.made, c)
	return c
}
