// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// standing is the state of one part that must make progress.
type standing struct {
	name  string // unique and constant
	moves uint64 // changes with each progress
	waits bool   // work is waiting for it
}

// standstill measures for how long parts make no progress while work waits for them. It
// counts only time in which the process ran: it is called every tick, so a late call
// shows that the process was frozen or starved of CPU, and nothing in it could make
// progress. It has no lock and no clock; its times have a monotonic reading, so that
// setting the wall clock has no effect.
type standstill struct {
	tick time.Duration
	at   time.Time     // of the last look
	ran  time.Duration // until then
	seen map[string]still
}

type still struct {
	moves uint64
	since time.Duration // value of ran
}

// runTo returns how long the process has run by now. A late look counts as at most two
// ticks.
func (s *standstill) runTo(now time.Time) time.Duration {
	if s.at.IsZero() {
		return 0
	}
	return s.ran + min(max(now.Sub(s.at), 0), 2*s.tick)
}

// look records the state of all parts.
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

// skip is a look at which the process is held: the time since the last look does not
// count.
func (s *standstill) skip(now time.Time) { s.at = now }

// stands returns for how long t has made no progress while work waited, according to
// the looks; 0: it progresses, or nothing waits.
func (s *standstill) stands(now time.Time, t standing) time.Duration {
	before, known := s.seen[t.name]
	if !t.waits || !known || before.moves != t.moves {
		return 0
	}
	return s.runTo(now) - before.since
}
