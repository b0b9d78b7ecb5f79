// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"container/heap"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// DefaultConcurrentLists is the default of Options.ConcurrentLists.
	DefaultConcurrentLists = 4
	// silenceLimit is how long a request without an answer keeps its place among the
	// lists and its turn.
	silenceLimit = time.Second
	// promoteAfter is how long a request waits before its rank rises by one.
	promoteAfter = time.Minute
	// illFor bounds how long a kind counts as ill without further requests.
	illFor = 10 * time.Minute
)

// rank is the urgency of a request, lower first. It reflects what a delay costs
// users.
type rank int

const (
	// RankWatch continues from a version. It is the cheapest request; delayed
	// too long it finds its version expired and becomes a list, the most
	// expensive one.
	RankWatch rank = iota
	// RankRelist renews stale data, on which controllers act wrongly.
	RankRelist
	// RankFirst is a first list: its controllers have not started, so nothing
	// goes wrong meanwhile.
	RankFirst
	// RankOther is for audits and for kinds that the server refused before (no
	// permission, no such kind).
	RankOther
	// ranks is their number: every request to an API group without trouble goes
	// before any to one that has refused.
	ranks
)

// Ask describes a request for the Pacer.
type Ask struct {
	Rank  rank
	Kind  schema.GroupVersionKind // of discovery, only the group
	List  bool                    // takes a place among the lists
	Size  int                     // length of the previous list; 0: unknown
	since time.Time
	// Contact is when the server last sent part of the list, in nanoseconds
	// since 1970. nil: not recorded.
	Contact *atomic.Int64
}

// ticket identifies a request that waits or has passed.
type ticket uint64

// pacerState decides which requests may be sent to a server, given the answers
// to earlier ones. A refusal holds up the refused kind, and turns pace the rest
// of its priority level and the host. It is pure: time is an argument. Not safe
// for concurrent use.
type pacerState struct {
	places  int // for lists; ill kinds have as many of their own
	host    domain
	levels  map[string]*domain // by the UID of the priority level
	kinds   map[schema.GroupVersionKind]*asked
	ill     map[*asked]bool // kinds
	groups  map[string]*int // number of ill kinds by API group
	waiting *waiting
	sent    map[ticket]*sending // unanswered
	sending []*sending          // in order of time, with the answered ones before the first other
	lists   map[ticket]listing  // holding a place
	listing [classes]int        // number of lists
}

// asked is the state of a kind.
type asked struct {
	level    *domain         // priority level last named by the server; nil: none
	groupIll *int            // number of ill kinds in its API group
	sick     map[*asked]bool // all ill kinds
	single   line            // its waiting requests other than lists
	lists    line
	ill      bool      // the last request was refused or failed
	at       time.Time // time of the last refusal
	until    time.Time // end of the server's Retry-After
	why      string
}

type sending struct {
	ticket
	at    time.Time
	class class
	level *domain // nil: unknown
}

type listing struct {
	since   time.Time
	class   class
	contact *atomic.Int64
}

func newPacerState(places int) *pacerState {
	return &pacerState{
		places: places, host: newDomain(), levels: map[string]*domain{},
		kinds: map[schema.GroupVersionKind]*asked{}, ill: map[*asked]bool{}, groups: map[string]*int{},
		waiting: newWaiting(), sent: map[ticket]*sending{}, lists: map[ticket]listing{},
	}
}

// arrive adds a request that wants to pass.
func (g *pacerState) arrive(t ticket, a Ask) {
	g.waiting.add(t, a, g.of(a.Kind))
}

func (g *pacerState) of(kind schema.GroupVersionKind) *asked {
	k := g.kinds[kind]
	if k == nil {
		if g.groups[kind.Group] == nil {
			g.groups[kind.Group] = new(int)
		}
		k = &asked{groupIll: g.groups[kind.Group], sick: g.ill}
		g.kinds[kind] = k
	}
	return k
}

// leave removes t and all that it holds.
func (g *pacerState) leave(t ticket) {
	g.waiting.remove(t)
	g.release(t)
	g.endList(t)
}

// admit returns the requests that may be sent now, most urgent first. Its cost grows with the
// number of kinds that wait and with that of the admitted requests, not with all that wait.
func (g *pacerState) admit(now time.Time) (admitted []ticket) {
	g.releaseSilent(now)
	g.waiting.promote(now)
	able := g.waiting.linesOf(func(l *line) bool { return g.mayPass(l, now) })
	for len(able.lines) > 0 {
		l := able.lines[0]
		if !g.mayPass(l, now) {
			heap.Pop(&able) // the last turn or place is taken, for all in the line
			continue
		}
		w := l.all[0]
		g.waiting.remove(w.ticket)
		g.send(w.ticket, w.Kind, now)
		if w.List {
			g.beginList(w.ticket, listing{since: now, class: w.class(), contact: w.Contact})
		}
		admitted = append(admitted, w.ticket)
		if l.Len() == 0 {
			heap.Pop(&able)
		} else {
			heap.Fix(&able, 0)
		}
	}
	return admitted
}

// mayPass reports whether the requests of l may be sent.
func (g *pacerState) mayPass(l *line, now time.Time) bool {
	return !now.Before(l.until) && !(l.list && g.crowded(l.class())) && g.full(l.asked, now) == nil
}

// send records that t sends a request for kind.
func (g *pacerState) send(t ticket, kind schema.GroupVersionKind, now time.Time) {
	g.release(t)
	k := g.of(kind)
	s := &sending{ticket: t, at: now, class: k.class(), level: k.level}
	g.sent[t], g.sending = s, append(g.sending, s)
	g.host.turns[s.class].under++
	if s.level != nil {
		s.level.turns[s.class].under++
	}
}

// release records that t has no unanswered request.
func (g *pacerState) release(t ticket) {
	s, ok := g.sent[t]
	if !ok {
		return
	}
	delete(g.sent, t)
	g.dropAnswered()
	g.host.turns[s.class].under--
	if s.level != nil {
		s.level.turns[s.class].under--
	}
}

// dropAnswered makes the first of sending an unanswered request.
func (g *pacerState) dropAnswered() {
	for len(g.sending) > 0 && g.sent[g.sending[0].ticket] != g.sending[0] {
		g.sending = g.sending[1:]
	}
}

// beginList gives t a place.
func (g *pacerState) beginList(t ticket, l listing) {
	g.endList(t)
	g.lists[t] = l
	g.listing[l.class]++
}

// endList takes the place of t, if it has one.
func (g *pacerState) endList(t ticket) {
	if l, ok := g.lists[t]; ok {
		delete(g.lists, t)
		g.listing[l.class]--
	}
}

// full returns the domain without room for another request for k, or nil.
func (g *pacerState) full(k *asked, now time.Time) *domain {
	c := k.class()
	if !g.host.turns[c].room(now) {
		return &g.host
	}
	if k.level != nil && !k.level.turns[c].room(now) {
		return k.level
	}
	return nil
}

func (k *asked) class() class {
	if k.ill {
		return retried
	}
	return fresh
}

// crowded reports whether the lists of a class fill its places. Ill kinds have
// separate places, so that silent ones delay no others.
func (g *pacerState) crowded(c class) bool { return g.underWay(c) >= g.places }

func (g *pacerState) underWay(c class) int { return g.listing[c] }

// releaseSilent releases requests that have been silent for too long.
func (g *pacerState) releaseSilent(now time.Time) {
	for len(g.sending) > 0 && now.Sub(g.sending[0].at) >= silenceLimit {
		g.release(g.sending[0].ticket)
	}
	for t, l := range g.lists {
		if now.Sub(l.lastContact()) >= silenceLimit {
			g.endList(t)
		}
	}
	for k := range g.ill {
		if now.Sub(k.at) >= illFor && now.Sub(k.until) >= illFor {
			k.cure()
		}
	}
}

func (l listing) lastContact() time.Time {
	if l.contact != nil {
		if at := time.Unix(0, l.contact.Load()); at.After(l.since) {
			return at
		}
	}
	return l.since
}

// sicken records a refused or failed request.
func (k *asked) sicken(at, until time.Time, why string) {
	if !k.ill {
		k.ill, k.sick[k] = true, true
		*k.groupIll++
	}
	k.at = at
	if until.After(k.until) {
		k.until, k.why = until, why
	}
}

// cure records an answered request.
func (k *asked) cure() {
	if k.ill {
		*k.groupIll--
		delete(k.sick, k)
	}
	k.ill, k.at, k.until, k.why = false, time.Time{}, time.Time{}, ""
}

// next returns when admit may admit a request because of time alone; zero:
// nothing waits.
func (g *pacerState) next(now time.Time) (at time.Time) {
	if g.waiting.len() == 0 {
		return at
	}
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for l := range g.waiting.lines {
		sooner(l.until)
	}
	for c := range g.host.turns {
		sooner(g.host.turns[c].next())
		for _, level := range g.levels {
			sooner(level.turns[c].next())
		}
	}
	if len(g.sending) > 0 {
		sooner(g.sending[0].at.Add(silenceLimit))
	}
	for _, l := range g.lists {
		sooner(l.lastContact().Add(silenceLimit))
	}
	return at
}

// Hold is why a request waits. Zero: briefly, behind others.
type Hold struct {
	Until time.Time // zero: unknown
	Why   string
}

// hold returns why a waits at now.
func (g *pacerState) hold(a Ask, now time.Time) Hold {
	k := g.of(a.Kind)
	if k.until.After(now) {
		return Hold{Until: k.until, Why: fmt.Sprintf("waits for the server's Retry-After until %s: %s", k.until.Format(time.RFC3339), k.why)}
	}
	if c := k.class(); a.List && g.crowded(c) {
		return Hold{Why: fmt.Sprintf("waits for its turn: %d other lists are under way", g.underWay(c))}
	}
	if d := g.full(k, now); d != nil && d.why != "" {
		return Hold{Why: "waits for its turn: the server refuses requests: " + d.why}
	}
	return Hold{}
}

// LongestRetryAfter bounds a server's Retry-After.
const LongestRetryAfter = 10 * time.Minute
