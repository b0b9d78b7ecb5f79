// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/list"
	"time"
)

// pending holds keys back until nothing has been said of them for a while, or for
// as long as one may wait. It has no clock and no lock; times are the caller's, and
// do not go back.
type pending[K comparable] struct {
	quiet, longest time.Duration
	keys           map[K]*said[K]
	peak           int // the most keys since there was none

	// Every key waits in both, each in the order in which it falls due by one of
	// the two times.
	byLast, byFirst list.List
}

// said is what has been said of a key.
type said[K comparable] struct {
	key         K
	cause       Cause
	first, last time.Time
	inLast      *list.Element
	inFirst     *list.Element
}

func (s *said[K]) due(quiet, longest time.Duration) time.Time {
	due, latest := s.last.Add(quiet), s.first.Add(longest)
	if latest.Before(due) {
		return latest
	}
	return due
}

// say notes that key was named at now. It reports whether no other key waits.
func (p *pending[K]) say(key K, cause Cause, now time.Time) (alone bool) {
	if s := p.keys[key]; s != nil {
		s.cause, s.last = merged(key, s.cause, cause), now
		p.byLast.MoveToBack(s.inLast)
		return false
	}
	if p.keys == nil {
		p.keys = make(map[K]*said[K])
	}
	s := &said[K]{key: key, cause: cause, first: now, last: now}
	s.inLast, s.inFirst = p.byLast.PushBack(s), p.byFirst.PushBack(s)
	p.keys[key] = s
	p.peak = max(p.peak, len(p.keys))
	return len(p.keys) == 1
}

// next is when the first key falls due; false: none waits.
func (p *pending[K]) next() (time.Time, bool) {
	if len(p.keys) == 0 {
		return time.Time{}, false
	}
	s := p.first()
	return s.due(p.quiet, p.longest), true
}

// first is the key that falls due first.
func (p *pending[K]) first() *said[K] {
	a := p.byLast.Front().Value.(*said[K])
	b := p.byFirst.Front().Value.(*said[K])
	if b.due(p.quiet, p.longest).Before(a.due(p.quiet, p.longest)) {
		return b
	}
	return a
}

// take takes a key out that is due at now; nil: none is.
func (p *pending[K]) take(now time.Time) *said[K] {
	if due, some := p.next(); !some || now.Before(due) {
		return nil
	}
	s := p.first()
	p.byLast.Remove(s.inLast)
	p.byFirst.Remove(s.inFirst)
	delete(p.keys, s.key)
	const kept = 1024 // keys whose room is never given back
	if len(p.keys) == 0 && p.peak > kept {
		p.keys, p.peak = nil, 0
	}
	return s
}

// merged is the one cause of a key that was named twice: of one object, all that
// has changed; of two, the one that says more, of equals the later.
func merged[K comparable](key K, before, after Cause) Cause {
	if before.Object != after.Object {
		if before.weight(key) > after.weight(key) {
			return before
		}
		return after
	}
	after.Deleting = after.Deleting || before.Deleting
	after.Resync = after.Resync && before.Resync
	if before.Type != 0 && after.Type == before.Type {
		after.OldGeneration = before.OldGeneration
	}
	if after.Renewed() || !before.Renewed() {
		return after
	}
	after.Type, after.OldGeneration = before.Type, before.OldGeneration
	if after.Generation == 0 {
		after.Generation = before.Generation
	}
	return after
}

// weight of a cause: that of the key's own object above that of another, and a
// renewed one above one that is not.
func (c Cause) weight(key any) (w int) {
	if object, ok := key.(Key); ok && object == c.Object {
		w += 2
	}
	if c.Renewed() {
		w++
	}
	return w
}
