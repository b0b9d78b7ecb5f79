// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import "time"

// pace is how often a line is logged: a burst, then at growing intervals.
type pace struct {
	burst       int
	first, last time.Duration // intervals after the burst
}

// The paces of a key, of a message of one controller, kind or server, of a
// message, and of a stack. A line is logged if the first three allow it.
var (
	ofKey   = pace{burst: 1, first: 10 * time.Second, last: time.Hour}
	ofPart  = pace{burst: 10, first: 10 * time.Second, last: 5 * time.Minute}
	ofText  = pace{burst: 100, first: time.Second, last: time.Minute}
	ofStack = pace{burst: 1, first: time.Hour, last: 24 * time.Hour}
)

// mostPaced is how many keys, parts, messages and stacks are remembered in all.
const mostPaced = 2048

// subject identifies a line by hashes: of its message; of the message and the
// controller, kind or server; of both and the key; and of the error's text.
type subject struct{ text, part, key, cause uint64 }

// paced is the state of one hash.
type paced struct {
	id            uint64
	shown         int       // number in the burst
	next          time.Time // earliest time of a line after the burst
	gap           time.Duration
	at            time.Time // time of the last line
	cause         uint64    // text of its error
	omitted       uint64    // lines omitted since then; only for parts
	older, recent *paced    // by last use
}

// due reports whether a line passes at now. After twice the interval without
// one, it starts over.
func (e *paced) due(now time.Time, p pace) bool {
	if e.shown > 0 && now.Sub(e.next) > 2*max(e.gap, p.first) {
		e.shown, e.gap = 0, 0
	}
	return e.shown < p.burst || !now.Before(e.next)
}

// pass records that a line passes at now.
func (e *paced) pass(now time.Time, p pace) {
	e.at = now
	if e.shown < p.burst {
		e.shown++
		e.next = now
		if e.shown < p.burst {
			return
		}
	}
	e.gap = min(max(2*e.gap, p.first), p.last)
	e.next = now.Add(e.gap)
}

// throttle decides what to log. It has no lock and no clock, and remembers a
// limited number of the most recent hashes.
type throttle struct {
	all            map[uint64]*paced
	oldest, newest *paced
	forgotten      uint64 // omitted lines of forgotten parts
}

// admit reports whether a line about s is logged at now, how many lines of its
// message and part were omitted before it, and how many of parts forgotten
// since.
func (t *throttle) admit(now time.Time, s subject) (show bool, omitted, forgotten uint64) {
	part, text, key := t.of(s.part), t.of(s.text), t.of(s.key)
	// A key that fails for a new reason is logged sooner, though not each time.
	changed := s.cause != key.cause && now.Sub(key.at) >= ofKey.first
	if !(changed || key.due(now, ofKey)) || !part.due(now, ofPart) || !text.due(now, ofText) {
		part.omitted++
		return false, 0, 0
	}
	if changed {
		key.gap = 0
	}
	key.pass(now, ofKey)
	part.pass(now, ofPart)
	text.pass(now, ofText)
	key.cause = s.cause
	omitted, forgotten = part.omitted, t.forgotten
	part.omitted, t.forgotten = 0, 0
	return true, omitted, forgotten
}

// stack reports whether the stack of that hash is shown in full at now.
func (t *throttle) stack(now time.Time, id uint64) bool {
	e := t.of(id)
	if !e.due(now, ofStack) {
		return false
	}
	e.pass(now, ofStack)
	return true
}

// of returns the state of id and marks it as the most recently used.
func (t *throttle) of(id uint64) *paced {
	e := t.all[id]
	if e == nil {
		e = &paced{id: id}
		if t.all == nil {
			t.all = map[uint64]*paced{}
		}
		t.all[id] = e
	} else {
		t.unlink(e)
	}
	e.older, e.recent = t.newest, nil
	if t.newest != nil {
		t.newest.recent = e
	} else {
		t.oldest = e
	}
	t.newest = e
	if len(t.all) > mostPaced {
		gone := t.oldest
		t.unlink(gone)
		delete(t.all, gone.id)
		t.forgotten += gone.omitted
	}
	return e
}

func (t *throttle) unlink(e *paced) {
	if e.older != nil {
		e.older.recent = e.recent
	} else {
		t.oldest = e.recent
	}
	if e.recent != nil {
		e.recent.older = e.older
	} else {
		t.newest = e.older
	}
}
