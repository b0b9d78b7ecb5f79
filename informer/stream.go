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
	// update has the number of a key's last event when that is an update or
	// tells of an undecodable version, for what was pushed above the bound.
	update map[Key]uint64
	// undecodable: the handler asks for what cannot be decoded.
	undecodable bool
	time        uint32 // as in backlog
}

type told[T Object] struct {
	Event[T]
	isMark bool
	at     uint32
}

func (s *eventStream[T]) len() int { return s.events.Len() }

func (s *eventStream[T]) push(c change[T], filter *scopeSet, initial bool) {
	was, is := c.before.seenBy(filter), c.after.seenBy(filter)
	var wasBad, isBad *Undecodable
	if s.undecodable {
		wasBad, isBad = c.trouble.seenBy(filter)
	}
	full := s.events.Len() >= streamMergeAbove
	switch {
	case wasBad == isBad && (!was && !is || was && is && c.same), c.resync && full:
		return
	case was && is && c.oldUID == c.newUID:
		if !c.same && !(c.resync && isBad != nil) {
			s.mergeable(Event[T]{Type: EventUpdated, Key: c.key, Old: c.old, New: c.new, Resync: c.resync, Healed: wasBad != nil && isBad == nil}, full)
		}
	default:
		s.cameOrWent(&c, was, is, wasBad, isBad, initial)
	}
	if isBad != nil && (isBad != wasBad || c.resync) {
		e := Event[T]{Type: EventUndecodable, Key: c.key, Undecodable: isBad, Initial: initial, Resync: c.resync}
		if is {
			e.Old = c.new
		}
		s.mergeable(e, full)
	}
}

// cameOrWent adds the end of what was, and the beginning of what is.
func (s *eventStream[T]) cameOrWent(c *change[T], was, is bool, wasBad, isBad *Undecodable, initial bool) {
	delete(s.update, c.key)
	switch ended := wasBad != nil && (!is && isBad == nil || c.oldUID != c.newUID); {
	case was:
		e := Event[T]{Type: EventDeleted, Key: c.key, LeftScope: c.leftScope}
		e.Old, e.FinalStateUnknown = c.end()
		s.add(e)
	case ended:
		e := Event[T]{Type: EventDeleted, Key: c.key, LeftScope: c.leftScope, Undecodable: wasBad}
		_, e.FinalStateUnknown = c.end()
		s.add(e)
	}
	if is {
		s.add(Event[T]{Type: EventAdded, Key: c.key, New: c.new, Initial: initial})
	}
}

func (s *eventStream[T]) add(e Event[T]) uint64 {
	return s.events.Push(told[T]{Event: e, at: s.time})
}

// mergeable adds an update or an undecodable version, or lets it go into one of
// the same type before.
func (s *eventStream[T]) mergeable(e Event[T], full bool) {
	if !full {
		delete(s.update, e.Key)
		s.add(e)
		return
	}
	if n, ok := s.update[e.Key]; ok && n >= s.events.Front() && s.events.At(n).Type == e.Type {
		at := s.events.At(n)
		at.New, at.Undecodable, at.Resync, at.Healed = e.New, e.Undecodable, false, at.Healed || e.Healed
		return
	}
	if s.update == nil {
		s.update = make(map[Key]uint64)
	}
	s.update[e.Key] = s.add(e)
}

func (s *eventStream[T]) mark() { s.events.Push(told[T]{isMark: true, at: s.time}) }

func (s *eventStream[T]) clock(now uint32) { s.time = now }

func (s *eventStream[T]) oldest() (at uint32, ok bool) {
	if s.events.Len() == 0 {
		return 0, false
	}
	return s.events.At(s.events.Front()).at, true
}

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
