// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// DefaultConcurrentLists is Options.ConcurrentLists of zero.
	DefaultConcurrentLists = 4
	// unheard for so long, a request no longer holds up others: neither its place
	// among the lists nor its turn.
	unheard = time.Second
	// promoteAfter is how long a request waits before it is one rank more urgent.
	promoteAfter = time.Minute
	// illFor bounds how long a kind counts as ill that sends no more requests.
	illFor = 10 * time.Minute
)

// rank is how urgent a request is: the lower goes first. It follows what a
// delay does to users.
type rank int

const (
	// RankWatch goes on from a version: it costs the server least, and late it
	// finds its version forgotten and becomes a list, which costs most.
	RankWatch rank = iota
	// RankRelist renews what readers act upon, and act wrongly while it is old.
	RankRelist
	// RankFirst is a first list: its controllers have not begun, so nothing wrong
	// is done meanwhile.
	RankFirst
	// RankOther is what nobody waits for: audits, and what the server has
	// refused before (no right, no such kind).
	RankOther
	// ranks is their number: any request to an API group without trouble goes
	// before any to one that has refused.
	ranks
)

// Ask is one request that wants to pass the gate.
type Ask struct {
	Rank  rank
	Kind  schema.GroupVersionKind // what the request is about; of discovery, the group alone
	List  bool                    // takes a place among the lists
	Size  int                     // objects that the list had before; 0: unknown
	since time.Time
	// contact is when the server last sent something of the list, nanoseconds
	// since 1970. nil: nobody tells.
	Contact *atomic.Int64
}

// ticket numbers who wants to pass, and what has passed.
type ticket uint64

// gateState says which requests may be sent to a server, given how earlier
// ones were answered. A refusal holds up the kind that was refused. The rest of
// its priority level, and of the host, is paced by turns. Not safe for
// concurrent use; time comes as an argument.
type gateState struct {
	places  int // for lists, of well kinds and of ill ones
	host    domain
	levels  map[string]*domain // by the UID of the priority level
	kinds   map[schema.GroupVersionKind]*asked
	groups  map[string]*int // ill kinds of the API group
	waiting []queued
	sent    map[ticket]sending // not answered
	lists   map[ticket]listing // hold a place
}

// asked is what is known of a kind that was asked about.
type asked struct {
	level    *domain   // priority level that the server has named last; nil: none
	groupIll *int      // ill kinds of its API group
	ill      bool      // its last request was refused or failed
	at       time.Time // of the last refusal
	until    time.Time // the end of the server's Retry-After
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
	level *domain // nil: not known
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

// arrive: t wants to send what a says.
func (g *gateState) arrive(t ticket, a Ask) {
	g.waiting = append(g.waiting, queued{t, a, g.of(a.Kind)})
}

// of is what is known of kind.
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

// leave: t wants nothing any more and holds nothing.
func (g *gateState) leave(t ticket) {
	g.waiting = slices.DeleteFunc(g.waiting, func(w queued) bool { return w.ticket == t })
	g.release(t)
	delete(g.lists, t)
}

// admit are those who may send now, the most urgent first.
func (g *gateState) admit(now time.Time) (admitted []ticket) {
	g.settle(now)
	var able []queued
	noPlace := g.crowded(fresh) && g.crowded(retried)
	for _, w := range g.waiting {
		if !(w.List && noPlace) && g.mayPass(w, now) {
			able = append(able, w)
		}
	}
	if len(able) == 0 {
		return nil
	}
	slices.SortStableFunc(able, func(a, b queued) int { return a.compare(b, now) })
	passed := make(map[ticket]bool, len(able))
	for _, w := range able {
		if !g.mayPass(w, now) {
			continue // those before it have taken its turn, or its place
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

func (g *gateState) mayPass(w queued, now time.Time) bool {
	return !now.Before(w.until) && !(w.List && g.crowded(w.class())) && g.full(w.asked, now) == nil
}

// send notes that a request of t about kind is sent.
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

// release: t has no unanswered request any more.
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

// full is the domain that lets no further request about k pass; nil: none.
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

// crowded: ill kinds have places of their own, so that those of which the
// server says nothing hold up no other.
func (g *gateState) crowded(c class) bool { return g.underWay(c) >= g.places }

func (g *gateState) underWay(c class) (n int) {
	for _, l := range g.lists {
		if l.class == c {
			n++
		}
	}
	return n
}

// compare orders by urgency, then the smallest list, then who came first.
func (w queued) compare(b queued, now time.Time) int {
	return cmp.Or(
		cmp.Compare(w.urgency(now), b.urgency(now)),
		cmp.Compare(w.Size, b.Size),
		w.since.Compare(b.since),
	)
}

// urgency is the rank of w, each minute of waiting one less. An API group that
// has ill kinds goes behind all others.
func (w queued) urgency(now time.Time) rank {
	r := w.Rank - rank(now.Sub(w.since)/promoteAfter)
	if *w.groupIll > 0 {
		r += ranks
	}
	return r
}

// settle lets go of what has been silent for too long.
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

// sicken: a request was refused or has failed.
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

// cure: a request was answered.
func (k *asked) cure() {
	if k.ill {
		*k.groupIll--
	}
	k.ill, k.at, k.until, k.why = false, time.Time{}, time.Time{}, ""
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

// Hold is why a request waits. Its zero value: for a moment, behind others.
type Hold struct {
	Until time.Time // zero: not known
	Why   string
}

// hold says why a waits at now.
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

// LongestRetryAfter bounds what a server may ask for.
const LongestRetryAfter = 10 * time.Minute
