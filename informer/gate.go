// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// defaultConcurrentLists is Options.ConcurrentLists of zero.
	defaultConcurrentLists = 4
	// unheard for so long, a request no longer holds up others: neither its place
	// among the lists nor its part of the window.
	unheard = time.Second
	// strangerWait bounds how long an API group waits for the Retry-After of
	// another one, which may be another server's behind the same host.
	strangerWait = time.Minute
	// fullyOpen is how wide the window gets before it has no bound.
	fullyOpen = 32
	// promoteAfter is how long a request waits before it is one rank more urgent.
	promoteAfter = time.Minute
)

// rank is how urgent a request is: the lower goes first. It follows what a
// delay does to users.
type rank int

const (
	// rankWatch goes on from a version: it costs the server least, and late it
	// finds its version forgotten and becomes a list, which costs most.
	rankWatch rank = iota
	// rankRelist renews what readers act upon, and act wrongly while it is old.
	rankRelist
	// rankFirst is a first list: its controllers have not begun, so nothing wrong
	// is done meanwhile.
	rankFirst
	// rankOther is what nobody waits for: audits, and what the server has
	// refused before (no right, no such kind).
	rankOther
)

// ask is one request that wants to pass the gate.
type ask struct {
	rank  rank
	group string // API group
	list  bool   // takes a place among the lists
	size  int    // objects that the list had before; 0: unknown
	since time.Time
	// contact is when the server last sent something of the list, nanoseconds
	// since 1970. nil: nobody tells.
	contact *atomic.Int64
}

// ticket numbers who wants to pass, and what has passed.
type ticket uint64

// gateState says which requests may be sent to a server. Not safe for
// concurrent use; time comes as an argument.
type gateState struct {
	places  int                  // for lists
	closed  time.Time            // until then for all
	groups  map[string]time.Time // until then for the API group
	why     string               // the last refusal
	window  int                  // unanswered requests at a time; 0: any number
	waiting []queued
	sent    map[ticket]time.Time // not answered
	lists   map[ticket]listing   // hold a place
}

type queued struct {
	ticket
	ask
}

type listing struct {
	since   time.Time
	contact *atomic.Int64
}

func newGateState(places int) *gateState {
	return &gateState{places: places, groups: map[string]time.Time{}, sent: map[ticket]time.Time{}, lists: map[ticket]listing{}}
}

// arrive: t wants to send what a says.
func (g *gateState) arrive(t ticket, a ask) { g.waiting = append(g.waiting, queued{t, a}) }

// leave: t wants nothing any more and holds nothing.
func (g *gateState) leave(t ticket) {
	g.waiting = slices.DeleteFunc(g.waiting, func(w queued) bool { return w.ticket == t })
	delete(g.sent, t)
	delete(g.lists, t)
}

// admit are those who may send now, the most urgent first.
func (g *gateState) admit(now time.Time) (admitted []ticket) {
	g.settle(now)
	slices.SortStableFunc(g.waiting, func(a, b queued) int { return a.compare(b.ask, now) })
	g.waiting = slices.DeleteFunc(g.waiting, func(w queued) bool {
		if !g.mayPass(w, now) {
			return false
		}
		g.sent[w.ticket] = now
		if w.list {
			g.lists[w.ticket] = listing{since: now, contact: w.contact}
		}
		admitted = append(admitted, w.ticket)
		return true
	})
	return admitted
}

func (g *gateState) mayPass(w queued, now time.Time) bool {
	return !now.Before(g.closedFor(w.group)) && !g.windowFull() && !(w.list && g.crowded())
}

func (g *gateState) windowFull() bool { return g.window > 0 && len(g.sent) >= g.window }

func (g *gateState) crowded() bool { return len(g.lists) >= g.places }

// closedFor is until when requests to group wait.
func (g *gateState) closedFor(group string) time.Time {
	if own := g.groups[group]; own.After(g.closed) {
		return own
	}
	return g.closed
}

// compare orders by urgency, then the smallest list, then who came first.
func (a ask) compare(b ask, now time.Time) int {
	return cmp.Or(
		cmp.Compare(a.rank-rank(now.Sub(a.since)/promoteAfter), b.rank-rank(now.Sub(b.since)/promoteAfter)),
		cmp.Compare(a.size, b.size),
		a.since.Compare(b.since),
	)
}

// settle lets go of what has been silent for too long, and opens the groups
// whose time has come.
func (g *gateState) settle(now time.Time) {
	for t, at := range g.sent {
		if now.Sub(at) >= unheard {
			g.answered(t)
		}
	}
	for t, l := range g.lists {
		if now.Sub(l.heard()) >= unheard {
			delete(g.lists, t)
		}
	}
	for group, until := range g.groups {
		if !now.Before(until) {
			delete(g.groups, group)
			g.window = 1
		}
	}
}

func (l listing) heard() time.Time {
	if l.contact != nil {
		if at := time.Unix(0, l.contact.Load()); at.After(l.since) {
			return at
		}
	}
	return l.since
}

// answered: the server has answered t, or the request has failed. What was
// sent since the gate opened widens the window.
func (g *gateState) answered(t ticket) {
	at, ok := g.sent[t]
	delete(g.sent, t)
	if ok && g.window > 0 && !at.Before(g.closed) {
		if g.window++; g.window > fullyOpen {
			g.window = 0
		}
	}
}

// refused: the server wants no requests until the given time, for the reason
// why. It has said so to t, a request to group.
func (g *gateState) refused(t ticket, group string, now, until time.Time, why string) {
	delete(g.sent, t)
	if until.After(g.groups[group]) {
		g.groups[group] = until
	}
	if all := now.Add(min(until.Sub(now), strangerWait)); all.After(g.closed) {
		g.closed = all
	}
	g.window, g.why = 1, why
}

// next is when admit may admit somebody without anything else happening; zero:
// nobody waits.
func (g *gateState) next(now time.Time) (at time.Time) {
	if len(g.waiting) == 0 {
		return at
	}
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	sooner(g.closed)
	for _, until := range g.groups {
		sooner(until)
	}
	for _, sent := range g.sent {
		sooner(sent.Add(unheard))
	}
	for _, l := range g.lists {
		sooner(l.heard().Add(unheard))
	}
	return at
}

// hold is why a request waits. Its zero value: for a moment, behind others.
type hold struct {
	until time.Time // zero: not known
	why   string
}

// hold says why a waits at now.
func (g *gateState) hold(a ask, now time.Time) hold {
	if until := g.closedFor(a.group); until.After(now) {
		return hold{until: until, why: fmt.Sprintf("waits for the server's Retry-After until %s: %s", until.Format(time.RFC3339), g.why)}
	}
	if a.list && g.crowded() {
		return hold{why: fmt.Sprintf("waits for its turn: %d other lists are under way", len(g.lists))}
	}
	return hold{}
}
