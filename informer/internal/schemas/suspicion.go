// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"time"
)

const (
	// settled is how long after a change of schema the server has ended every
	// watch of the kind, with room to spare: kube-apiserver takes one second.
	settled = 10 * time.Second
	// lookSlack brings looks together that are due almost at the same time.
	lookSlack = time.Second
	// No more than lookBurst looks in lookWindow, however often watches end.
	lookBurst, lookWindow = 10, 5 * time.Minute
	// lookPause after the server has refused to say anything of its schemas.
	lookPause = time.Hour
	// lookFirst is when the first look comes, after the lists of the start.
	lookFirst = 5 * time.Second
)

// lookAfter a watch has broken and is open again: a server publishes a changed
// schema up to a second after it applies it, of an aggregated API up to a
// minute.
var lookAfter = [...]time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 40 * time.Second, 2 * time.Minute}

// fingerprint is a text that changes with what it stands for: the hash of a
// group-version's schema, or the server's version.
type fingerprint struct {
	text string
	// since is when it was first seen. What it stands for may be older.
	since time.Time
	// first: none was known before.
	first bool
}

// seen is f after a look at now that found text; empty says nothing.
func (f fingerprint) seen(text string, now time.Time) fingerprint {
	if text == "" || text == f.text {
		return f
	}
	return fingerprint{text: text, since: now, first: f.text == ""}
}

// changedAfter says whether f is known to be another than at t.
func (f fingerprint) changedAfter(t time.Time) bool { return !f.first && f.since.After(t) }

// suspicion is that the schema of a scope's objects may have changed, because
// its watch broke.
type suspicion struct {
	listed time.Time // when the scope's last list began
	alive  time.Time // when the watch was last known to be sound
	// cut: the watch broke without the server's word, or was ended early by a
	// server that is another one since: objects may have changed long before.
	cut    bool
	opened time.Time // when the scope could be watched again; zero: not yet
	looks  int       // so far
}

// due is when the next look is wanted. ok: one is.
func (s suspicion) due() (at time.Time, ok bool) {
	if s.opened.IsZero() || s.looks == len(lookAfter) {
		return at, false
	}
	return s.opened.Add(lookAfter[s.looks]), true
}

// outdated says whether the scope's objects may be of an older schema than h.
func (s suspicion) outdated(h, server fingerprint) bool {
	switch {
	case h.text == "", !h.since.After(s.listed):
		return false // nothing is known, or it was so when they were listed
	case s.cut || server.changedAfter(s.listed):
		// Nothing is known of the time since. The first look follows the first
		// lists so closely that it stands for them.
		return !h.first
	}
	// A changed schema ends the watch in no time. This one went on.
	return h.since.Add(settled).After(s.alive)
}

// pacing bounds the looks in a window of time.
type pacing struct {
	recent []time.Time // of the last looks, the oldest first
	paused time.Time   // no look before
}

// allow is the first moment from at on when a look may be.
func (p *pacing) allow(at time.Time) time.Time {
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

func (p *pacing) note(now time.Time) {
	if len(p.recent) == lookBurst {
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	p.recent = append(p.recent, now)
}
