// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "github.com/flyball-dev/flyball/internal/deque"

// streamMergeAbove so many waiting events, consecutive updates of a key merge.
// Each of them may hold the last reference to a state of an object: so many of
// a Pod are 4 MiB.
const streamMergeAbove = 200

// eventStream is what waits for a handler of every event: the events in their
// order. Additions and deletions are never dropped, so it grows with them.
type eventStream[T Object] struct {
	events deque.Deque[told[T]]
	// update has the number of a key's last event when that is an update, for
	// what was pushed above the bound.
	update map[Key]uint64
}

type told[T Object] struct {
	Event[T]
	isMark bool
}

func (s *eventStream[T]) len() int { return s.events.Len() }

func (s *eventStream[T]) push(c change[T], filter *scopeSet, initial bool) {
	was, is := c.before.seenBy(filter), c.after.seenBy(filter)
	full := s.events.Len() >= streamMergeAbove
	switch {
	case !was && !is, was && is && c.same, c.resync && full:
		return
	case was && is && c.oldUID == c.newUID:
		s.updated(Event[T]{Type: EventUpdated, Key: c.key, Old: c.old, New: c.new, Resync: c.resync}, full)
		return
	}
	delete(s.update, c.key)
	if was {
		e := Event[T]{Type: EventDeleted, Key: c.key, LeftScope: c.leftScope}
		e.Old, e.FinalStateUnknown = c.end()
		s.events.Push(told[T]{Event: e})
	}
	if is {
		s.events.Push(told[T]{Event: Event[T]{Type: EventAdded, Key: c.key, New: c.new, Initial: initial}})
	}
}

// updated adds an update, or lets it go into the one before.
func (s *eventStream[T]) updated(e Event[T], full bool) {
	if !full {
		delete(s.update, e.Key)
		s.events.Push(told[T]{Event: e})
		return
	}
	if n, ok := s.update[e.Key]; ok && n >= s.events.Front() {
		at := s.events.At(n)
		at.New, at.Resync = e.New, false
		return
	}
	if s.update == nil {
		s.update = make(map[Key]uint64)
	}
	s.update[e.Key] = s.events.Push(told[T]{Event: e})
}

func (s *eventStream[T]) mark() { s.events.Push(told[T]{isMark: true}) }

func (s *eventStream[T]) take(buf []Event[T]) (events []Event[T], marked bool) {
	if s.events.Len() == 0 {
		return buf, false
	}
	e := s.events.Pop()
	if s.events.Len() == 0 {
		s.update = nil
	}
	if e.isMark {
		return buf, true
	}
	return append(buf, e.Event), false
}
