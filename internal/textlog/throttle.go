// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import "time"

// pace is how often something is logged: a burst at first, then at growing intervals.
type pace struct {
	burst       int
	first, last time.Duration // intervals after the burst
}

// The paces of one key, of one message of one controller, kind or server, and of one
// message. A line is logged when each of the three lets it pass.
var (
	ofKey   = pace{burst: 1, first: 10 * time.Second, last: time.Hour}
	ofPart  = pace{burst: 10, first: 10 * time.Second, last: 5 * time.Minute}
	ofText  = pace{burst: 100, first: time.Second, last: time.Minute}
	ofStack = pace{burst: 1, first: time.Hour, last: 24 * time.Hour}
)

// mostPaced is how many keys, parts, messages and stacks together are remembered.
const mostPaced = 2048

// subject is what a line is about, as hashes: its message; the message and the
// controller, kind or server; both and the key; and the error's text.
type subject struct{ text, part, key, cause uint64 }

// paced is what is known of one hash.
type paced struct {
	id            uint64
	shown         int       // of the burst
	next          time.Time // from when a line passes after the burst
	gap           time.Duration
	at            time.Time // of the last that passed
	cause         uint64    // its error's text
	omitted       uint64    // lines since then; counted for parts alone
	older, recent *paced    // by last use
}

// due reports whether a line passes at now. After twice the interval without any it
// is a new beginning.
func (e *paced) due(now time.Time, p pace) bool {
	if e.shown > 0 && now.Sub(e.next) > 2*max(e.gap, p.first) {
		e.shown, e.gap = 0, 0
	}
	return e.shown < p.burst || !now.Before(e.next)
}

// pass notes that a line has passed at now.
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

// throttle judges what to log now. It has no lock and no clock, and remembers a
// bounded number of things, the most recent.
type throttle struct {
	all            map[uint64]*paced
	oldest, newest *paced
	forgotten      uint64 // lines left out of parts that are not remembered any more
}

// judge says whether a line about s is logged at now and, if so, how many of its
// message and part have been left out before it, and how many of ones that have been
// forgotten since.
func (t *throttle) judge(now time.Time, s subject) (show bool, omitted, forgotten uint64) {
	part, text, key := t.of(s.part), t.of(s.text), t.of(s.key)
	// A key that fails for another reason than before is news, though not each time.
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

// of is what is known of id, as the most recently used.
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
