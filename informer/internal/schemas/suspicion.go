// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"time"
)

const (
	// settleTime is the time after a schema change within which the server ends
	// every watch of the kind; kube-apiserver needs one second.
	settleTime = 10 * time.Second
	// lookSlack merges checks that are due almost at the same time.
	lookSlack = time.Second
	// At most lookBurst checks run in lookWindow, however often watches end.
	lookBurst, lookWindow = 10, 5 * time.Minute
	// lookPause follows a server's refusal to serve its schemas.
	lookPause = time.Hour
	// lookFirst is when the first check runs, after the initial lists.
	lookFirst = 5 * time.Second
)

// lookAfter are the times of the checks after a broken watch is open again. A
// server publishes a changed schema up to a second after it applies it, for an
// aggregated API up to a minute.
var lookAfter = [...]time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 40 * time.Second, 2 * time.Minute}

// fingerprint is a text that changes with its subject: the hash of a
// group-version's schema, or the server's version.
type fingerprint struct {
	text string
	// since is when it was first seen. The subject may be older.
	since time.Time
	// first: none was known before.
	first bool
}

// seen returns f after a check at now that found text; empty: no information.
func (f fingerprint) seen(text string, now time.Time) fingerprint {
	if text == "" || text == f.text {
		return f
	}
	return fingerprint{text: text, since: now, first: f.text == ""}
}

// changedAfter reports whether f is known to have changed after t.
func (f fingerprint) changedAfter(t time.Time) bool { return !f.first && f.since.After(t) }

// suspicion records that the schema of a scope's objects may have changed
// because its watch broke.
type suspicion struct {
	listed time.Time // when the scope's last list began
	alive  time.Time // when the watch was last known to work
	// cut: the watch broke without an answer, or a server that has since been
	// replaced ended it early. Objects may have changed long before.
	cut    bool
	opened time.Time // when the scope could be watched again; zero: not yet
	looks  int       // checks so far
}

// due returns when the next check is due. ok: there is one.
func (s suspicion) due() (at time.Time, ok bool) {
	if s.opened.IsZero() || s.looks == len(lookAfter) {
		return at, false
	}
	return s.opened.Add(lookAfter[s.looks]), true
}

// outdated reports whether the scope's objects may have an older schema than h.
func (s suspicion) outdated(h, server fingerprint) bool {
	switch {
	case h.text == "", !h.since.After(s.listed):
		return false // nothing is known, or it was already so at the list
	case s.cut || server.changedAfter(s.listed):
		// Nothing is known about the time since then. The first check is so
		// close to the first lists that it counts as made with them.
		return !h.first
	}
	// A schema change ends the watch at once. This one continued.
	return h.since.Add(settleTime).After(s.alive)
}

// checkLimit bounds the checks in a window of time.
type checkLimit struct {
	recent []time.Time // of the last checks, oldest first
	paused time.Time   // no check before
}

// allow returns the earliest time from at on when a check may run.
func (p *checkLimit) allow(at time.Time) time.Time {
	if len(p.recent) == lookBurst {
		if free := p.recent[0].Add(lookWindow); free.After(at) {
			at = free
		}
	}
	if p.paused.After(at) {
		at = p.paused
	}
	return at
}

func (p *checkLimit) record(now time.Time) {
	if len(p.recent) == lookBurst {
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	p.recent = append(p.recent, now)
}
