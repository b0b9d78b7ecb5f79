// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/list"
	"time"

	"github.com/flyball-dev/flyball/internal/fielddiff"
)

// pending delays keys until they have not been added for a while, or for at
// most the longest wait. It has no clock and no lock; times are arguments, and
// do not go back.
type pending[K comparable] struct {
	quiet, longest time.Duration
	keys           map[K]*pendingKey[K]
	peak           int // most keys since it was empty

	// Every key is in both lists, each sorted by when the key is due by one of
	// the two times.
	byLast, byFirst list.List
}

// pendingKey is a delayed key.
type pendingKey[K comparable] struct {
	key         K
	cause       Cause
	first, last time.Time
	inLast      *list.Element
	inFirst     *list.Element
}

func (s *pendingKey[K]) due(quiet, longest time.Duration) time.Time {
	due, latest := s.last.Add(quiet), s.first.Add(longest)
	if latest.Before(due) {
		return latest
	}
	return due
}

// add records that key was added at now. It reports whether no other key waits.
func (p *pending[K]) add(key K, cause Cause, now time.Time) (alone bool) {
	if s := p.keys[key]; s != nil {
		s.cause, s.last = merged(key, s.cause, cause), now
		p.byLast.MoveToBack(s.inLast)
		return false
	}
	if p.keys == nil {
		p.keys = make(map[K]*pendingKey[K])
	}
	s := &pendingKey[K]{key: key, cause: cause, first: now, last: now}
	s.inLast, s.inFirst = p.byLast.PushBack(s), p.byFirst.PushBack(s)
	p.keys[key] = s
	p.peak = max(p.peak, len(p.keys))
	return len(p.keys) == 1
}

// next returns when the first key is due; false: none waits.
func (p *pending[K]) next() (time.Time, bool) {
	if len(p.keys) == 0 {
		return time.Time{}, false
	}
	s := p.first()
	return s.due(p.quiet, p.longest), true
}

// first returns the key that is due first.
func (p *pending[K]) first() *pendingKey[K] {
	a := p.byLast.Front().Value.(*pendingKey[K])
	b := p.byFirst.Front().Value.(*pendingKey[K])
	if b.due(p.quiet, p.longest).Before(a.due(p.quiet, p.longest)) {
		return b
	}
	return a
}

// take removes and returns a key that is due at now, or nil.
func (p *pending[K]) take(now time.Time) *pendingKey[K] {
	if due, some := p.next(); !some || now.Before(due) {
		return nil
	}
	s := p.first()
	p.byLast.Remove(s.inLast)
	p.byFirst.Remove(s.inFirst)
	delete(p.keys, s.key)
	const kept = 1024 // room for these keys is never freed
	if len(p.keys) == 0 && p.peak > kept {
		p.keys, p.peak = nil, 0
	}
	return s
}

// merged combines the causes of a key that was added twice: for one object all
// that has changed; for two the more informative cause, or else the later.
func merged[K comparable](key K, before, after Cause) Cause {
	if before.Object != after.Object {
		if before.weight(key) > after.weight(key) {
			return before
		}
		return after
	}
	after.Deleting = after.Deleting || before.Deleting
	after.Resync = after.Resync && before.Resync
	after.Own = after.Own && before.Own
	after.changed = fielddiff.Union(before.changed, after.changed)
	if before.Type != 0 && after.Type == before.Type {
		after.OldGeneration, after.OldVersion = before.OldGeneration, before.OldVersion
	}
	if after.Renewed() || !before.Renewed() {
		return after
	}
	after.Type, after.OldGeneration, after.OldVersion = before.Type, before.OldGeneration, before.OldVersion
	if after.Generation == 0 {
		after.Generation = before.Generation
	}
	return after
}

// weight of a cause: the key's own object weighs more than another, and a
// renewed one more than one that is not.
func (c Cause) weight(key any) (w int) {
	if object, ok := key.(Key); ok && object == c.Object {
		w += 2
	}
	if c.Renewed() {
		w++
	}
	return w
}
