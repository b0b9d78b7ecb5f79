// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// standing is one thing that must progress, as it is at one moment.
type standing struct {
	name  string // unique; the same at each look
	moves uint64 // differs once it has moved
	waits bool   // there is work that it should do
}

// standstill knows for how long things have stood still while work waited for them.
// It counts the time in which the process ran, not the time that passed: what looks
// at things looks every tick, so a look that comes late shows that the process was
// frozen, or starved of CPU, and nothing in it could move. It has no lock and no
// clock; the times it is given have a monotonic reading, so that setting the wall clock
// means nothing.
type standstill struct {
	tick time.Duration
	at   time.Time     // of the last look
	ran  time.Duration // up to then
	seen map[string]still
}

type still struct {
	moves uint64
	since time.Duration // of ran
}

// runTo is how long the process has run by now. A look that is late counts as much as
// two that are not.
func (s *standstill) runTo(now time.Time) time.Duration {
	if s.at.IsZero() {
		return 0
	}
	return s.ran + min(max(now.Sub(s.at), 0), 2*s.tick)
}

// look takes in how everything stands.
func (s *standstill) look(now time.Time, all []standing) {
	s.ran, s.at = s.runTo(now), now
	seen := make(map[string]still, len(all))
	for _, t := range all {
		before, known := s.seen[t.name]
		switch {
		case !t.waits:
		case known && before.moves == t.moves:
			seen[t.name] = before
		default:
			seen[t.name] = still{t.moves, s.ran}
		}
	}
	s.seen = seen
}

// skip is a look that finds that the process stands still: none of the time since the
// last one counts.
func (s *standstill) skip(now time.Time) { s.at = now }

// stands is for how long t has stood still while work waited, as far as the looks have
// shown; 0: it moves, or nothing waits.
func (s *standstill) stands(now time.Time, t standing) time.Duration {
	before, known := s.seen[t.name]
	if !t.waits || !known || before.moves != t.moves {
		return 0
	}
	return s.runTo(now) - before.since
}
