// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// DefaultConcurrentLists is the default of Options.ConcurrentLists.
	DefaultConcurrentLists = 4
	// unheard is how long a request without an answer keeps its place among the
	// lists and its turn.
	unheard = time.Second
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

// Ask describes a request at the gate.
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

// gateState decides which requests may be sent to a server, given the answers
// to earlier ones. A refusal holds up the refused kind, and turns pace the rest
// of its priority level and the host. It is pure: time is an argument. Not safe
// for concurrent use.
type gateState struct {
	places  int // for lists; ill kinds have as many of their own
	host    domain
	levels  map[string]*domain // by the UID of the priority level
	kinds   map[schema.GroupVersionKind]*asked
	groups  map[string]*int // number of ill kinds by API group
	waiting []queued
	sent    map[ticket]sending // unanswered
	lists   map[ticket]listing // holding a place
}

// asked is the state of a kind at the gate.
type asked struct {
	level    *domain   // priority level last named by the server; nil: none
	groupIll *int      // number of ill kinds in its API group
	ill      bool      // the last request was refused or failed
	at       time.Time // time of the last refusal
	until    time.Time // end of the server's Retry-After
	why      string
}

type queued struct {
	ticket
	Ask
	*asked
}

type sending struct {
	at    time.Time
	class class
	level *domain // nil: unknown
}

type listing struct {
	since   time.Time
	class   class
	contact *atomic.Int64
}

func newGateState(places int) *gateState {
	return &gateState{
		places: places, host: newDomain(), levels: map[string]*domain{},
		kinds: map[schema.GroupVersionKind]*asked{}, groups: map[string]*int{},
		sent: map[ticket]sending{}, lists: map[ticket]listing{},
	}
}

// arrive adds a request that wants to pass.
func (g *gateState) arrive(t ticket, a Ask) {
	g.waiting = append(g.waiting, queued{t, a, g.of(a.Kind)})
}

func (g *gateState) of(kind schema.GroupVersionKind) *asked {
	k := g.kinds[kind]
	if k == nil {
		if g.groups[kind.Group] == nil {
			g.groups[kind.Group] = new(int)
		}
		k = &asked{groupIll: g.groups[kind.Group]}
		g.kinds[kind] = k
	}
	return k
}

// leave removes t and all that it holds.
func (g *gateState) leave(t ticket) {
	g.waiting = slices.DeleteFunc(g.waiting, func(w queued) bool { return w.ticket == t })
	g.release(t)
	delete(g.lists, t)
}

// admit returns the requests that may be sent now, most urgent first.
func (g *gateState) admit(now time.Time) (admitted []ticket) {
	g.settle(now)
	var able []*queued
	var crowded [classes]bool // asked once, not for each of thousands
	for c := range classes {
		crowded[c] = g.crowded(c)
	}
	for i := range g.waiting {
		w := &g.waiting[i]
		if !(w.List && crowded[w.class()]) && !now.Before(w.until) && g.full(w.asked, now) == nil {
			able = append(able, w)
		}
	}
	if len(able) == 0 {
		return nil
	}
	order := &urgent{able, now}
	heap.Init(order) // only the few that pass are put in order, not all that wait
	passed := make(map[ticket]bool)
	for left := countOf(able); g.anyRoom(left); {
		w := heap.Pop(order).(*queued)
		left[w.List][w.class()]--
		if !g.mayPass(*w, now) {
			continue // requests before it took its turn or its place
		}
		g.send(w.ticket, w.Kind, now)
		if w.List {
			g.lists[w.ticket] = listing{since: now, class: w.class(), contact: w.Contact}
		}
		passed[w.ticket] = true
		admitted = append(admitted, w.ticket)
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w queued) bool { return passed[w.ticket] })
	return admitted
}

// urgent is a heap of requests, the most urgent first. Tickets are in the order of arrival.
type urgent struct {
	all []*queued
	now time.Time
}

func (u *urgent) Len() int { return len(u.all) }
func (u *urgent) Less(i, j int) bool {
	a, b := u.all[i], u.all[j]
	return cmp.Or(a.compare(*b, u.now), cmp.Compare(a.ticket, b.ticket)) < 0
}
func (u *urgent) Swap(i, j int) { u.all[i], u.all[j] = u.all[j], u.all[i] }
func (u *urgent) Push(w any)    { u.all = append(u.all, w.(*queued)) }
func (u *urgent) Pop() any {
	last := len(u.all) - 1
	w := u.all[last]
	u.all = u.all[:last]
	return w
}

// counts are numbers of requests, lists apart, by class.
type counts map[bool]*[classes]int

func countOf(all []*queued) counts {
	n := counts{false: {}, true: {}}
	for _, w := range all {
		n[w.List][w.class()]++
	}
	return n
}

// anyRoom reports whether one of the requests might pass: it is no list, or one of a class
// with a free place.
func (g *gateState) anyRoom(left counts) bool {
	for c := range classes {
		if left[false][c] > 0 || left[true][c] > 0 && !g.crowded(c) {
			return true
		}
	}
	return false
}

func (g *gateState) mayPass(w queued, now time.Time) bool {
	return !now.Before(w.until) && !(w.List && g.crowded(w.class())) && g.full(w.asked, now) == nil
}

// send records that t sends a request for kind.
func (g *gateState) send(t ticket, kind schema.GroupVersionKind, now time.Time) {
	g.release(t)
	k := g.of(kind)
	s := sending{at: now, class: k.class(), level: k.level}
	g.sent[t] = s
	g.host.turns[s.class].under++
	if s.level != nil {
		s.level.turns[s.class].under++
	}
}

// release records that t has no unanswered request.
func (g *gateState) release(t ticket) {
	s, ok := g.sent[t]
	if !ok {
		return
	}
	delete(g.sent, t)
	g.host.turns[s.class].under--
	if s.level != nil {
		s.level.turns[s.class].under--
	}
}

// full returns the domain without room for another request for k, or nil.
func (g *gateState) full(k *asked, now time.Time) *domain {
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
func (g *gateState) crowded(c class) bool { return g.underWay(c) >= g.places }

func (g *gateState) underWay(c class) (n int) {
	for _, l := range g.lists {
		if l.class == c {
			n++
		}
	}
	return n
}

// compare orders by urgency, then size of the list, then arrival.
func (w queued) compare(b queued, now time.Time) int {
	return cmp.Or(
		cmp.Compare(w.urgency(now), b.urgency(now)),
		cmp.Compare(w.Size, b.Size),
		w.since.Compare(b.since),
	)
}

// urgency is the rank of w, less one per minute of waiting. An API group with
// ill kinds goes behind all others.
func (w queued) urgency(now time.Time) rank {
	r := w.Rank - rank(now.Sub(w.since)/promoteAfter)
	if *w.groupIll > 0 {
		r += ranks
	}
	return r
}

// settle releases requests that have been silent for too long.
func (g *gateState) settle(now time.Time) {
	for t, s := range g.sent {
		if now.Sub(s.at) >= unheard {
			g.release(t)
		}
	}
	for t, l := range g.lists {
		if now.Sub(l.heard()) >= unheard {
			delete(g.lists, t)
		}
	}
	for _, k := range g.kinds {
		if k.ill && now.Sub(k.at) >= illFor && now.Sub(k.until) >= illFor {
			k.cure()
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

// sicken records a refused or failed request.
func (k *asked) sicken(at, until time.Time, why string) {
	if !k.ill {
		k.ill = true
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
	}
	k.ill, k.at, k.until, k.why = false, time.Time{}, time.Time{}, ""
}

// next returns when admit may admit a request because of time alone; zero:
// nothing waits.
func (g *gateState) next(now time.Time) (at time.Time) {
	if len(g.waiting) == 0 {
		return at
	}
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, k := range g.kinds {
		sooner(k.until)
	}
	for c := range g.host.turns {
		sooner(g.host.turns[c].next())
		for _, level := range g.levels {
			sooner(level.turns[c].next())
		}
	}
	for _, s := range g.sent {
		sooner(s.at.Add(unheard))
	}
	for _, l := range g.lists {
		sooner(l.heard().Add(unheard))
	}
	return at
}

// Hold is why a request waits. Zero: briefly, behind others.
type Hold struct {
	Until time.Time // zero: unknown
	Why   string
}

// hold returns why a waits at now.
func (g *gateState) hold(a Ask, now time.Time) Hold {
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
