// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class separates requests for kinds whose last request was refused from all
// others. Each class has its own turns, so that repeatedly refused kinds use
// none of the others'.
type class int

const (
	fresh class = iota
	retried
	classes
)

const (
	// turnEvery is the interval between requests of a class to a server that
	// refuses all of them.
	turnEvery = 250 * time.Millisecond
	// freshBurst and retriedBurst bound the turns that accumulate over time.
	// That many kinds may be refused before the others are paced. A kind is
	// fresh for only one refusal, so a large fresh burst costs the server
	// little.
	freshBurst, retriedBurst = 60, 10
	// perAnswer is how many turns each answer other than a refusal adds.
	perAnswer = 2
	// fullyOpen is how many turns end the pacing.
	fullyOpen = 32
	// unnamed is how many turns a refusal takes that comes from a layer in
	// front of the storage and names no priority level.
	unnamed = 15
	// mostLevels bounds the number of tracked priority levels.
	mostLevels = 64
)

// domain is what may be overloaded: a priority level or the host.
type domain struct {
	turns [classes]turns
	why   string // of the last refusal
}

func newDomain() domain {
	return domain{turns: [classes]turns{fresh: {open: true, burst: freshBurst}, retried: {open: true, burst: retriedBurst}}}
}

// turns bounds the requests of one class in flight in a domain. Each answer
// raises the bound and each refusal lowers it; it grows slowly with time. A
// server that never answers gets one request per turnEvery.
type turns struct {
	open     bool // unbounded
	burst    int
	left     int // if not open
	under    int // unanswered requests
	at       time.Time
	narrowed time.Time // since when it is not open
}

// refill adds the turns earned by time.
func (b *turns) refill(now time.Time) {
	n := int(min(now.Sub(b.at)/turnEvery, 1000))
	if n <= 0 {
		return
	}
	b.at = b.at.Add(time.Duration(n) * turnEvery)
	if b.left < b.burst {
		b.left = min(b.left+n, b.burst)
	}
	if b.left >= b.burst {
		b.at = now
	}
}

// room reports whether another request may be sent.
func (b *turns) room(now time.Time) bool {
	if b.open {
		return true
	}
	b.refill(now)
	return b.left > b.under
}

// narrow starts to bound the requests.
func (b *turns) narrow(now time.Time) {
	if b.open {
		b.open, b.left, b.at, b.narrowed = false, b.burst, now, now
	}
}

func (b *turns) take(n int, now time.Time) {
	b.narrow(now)
	b.refill(now)
	b.left = max(0, min(b.left, b.burst)-n)
}

// gain records the answer to a request sent at that time. A request sent before
// the first refusal does not count.
func (b *turns) gain(sent, now time.Time) {
	if b.open || sent.Before(b.narrowed) {
		return
	}
	b.refill(now)
	b.left += perAnswer
	b.open = b.left >= fullyOpen
}

// next returns when time adds a turn, or zero.
func (b *turns) next() time.Time {
	if b.open || b.left >= b.burst {
		return time.Time{}
	}
	return b.at.Add(turnEvery)
}

// verdict is what an answer says about the server's load.
type verdict uint8

const (
	verdictServed  verdict = iota // any answer other than a refusal, possibly an error
	verdictFaulty                 // an internal error
	verdictGaveUp                 // the caller stopped waiting
	verdictLost                   // the connection broke
	verdictDead                   // no connection
	verdictRefused                // 429 or 503 from the kind's storage
	verdictBlocked                // 429 or 503 from a layer in front of the storage
)

// reply is the answer to a request.
type reply struct {
	verdict verdict
	level   string // UID of the priority level; empty: none named
	aside   bool   // not about the kind itself, such as discovery
	sent    time.Time
	until   time.Time // end of the Retry-After; zero: none
	why     string
}

// replied records the answer to t's request for kind, or its failure.
func (g *pacerState) replied(t ticket, kind schema.GroupVersionKind, r reply, now time.Time) {
	g.release(t)
	k := g.of(kind)
	level := g.levelNamed(k, r)
	c := k.class()
	switch r.verdict {
	case verdictServed:
		g.host.gain(r.sent, now)
		if level != nil {
			level.gain(r.sent, now)
		}
		if !r.aside {
			k.cure()
		}
		return
	case verdictGaveUp:
		return
	case verdictLost, verdictRefused:
		g.host.take(c, 1, r.why, now)
	case verdictDead:
		g.host.drain(r.why, now)
	case verdictBlocked:
		if level == nil {
			g.host.take(fresh, unnamed, r.why, now)
			g.host.take(retried, unnamed, r.why, now)
			break
		}
		g.host.take(c, 1, r.why, now)
		level.drain(r.why, now)
	}
	k.sicken(now, r.until, r.why)
}

// levelNamed returns the priority level named by r and assigns k to it.
func (g *pacerState) levelNamed(k *asked, r reply) *domain {
	if r.level == "" {
		return nil
	}
	level := g.levels[r.level]
	if level == nil {
		if len(g.levels) >= mostLevels {
			return nil
		}
		d := newDomain()
		level = &d
		g.levels[r.level] = level
	}
	if !r.aside {
		k.level = level
	}
	return level
}

// gain records an answered request of the domain.
func (d *domain) gain(sent, now time.Time) {
	for c := range d.turns {
		d.turns[c].gain(sent, now)
	}
}

// take removes n turns for a refusal of class c. An unexpected refusal also
// narrows the other class, in which the kind returns.
func (d *domain) take(c class, n int, why string, now time.Time) {
	d.why = why
	d.turns[c].take(n, now)
	if c == fresh {
		d.turns[retried].narrow(now)
	}
}

func (d *domain) drain(why string, now time.Time) {
	for c := range d.turns {
		d.take(class(c), d.turns[c].burst, why, now)
	}
}
