// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class tells requests about kinds whose last request was refused from all
// others. Each class has turns of its own, so that kinds that are refused again
// and again take none from those that are not.
type class int

const (
	fresh class = iota
	retried
	classes
)

const (
	// turnEvery is how often a request of a class may be sent to a server that
	// refuses all of them.
	turnEvery = 250 * time.Millisecond
	// freshBurst and retriedBurst are the turns that time alone brings together.
	// So many kinds may be refused before the others are paced. A kind is refused
	// as a fresh one only once, so many of them cost a server little.
	freshBurst, retriedBurst = 60, 10
	// perAnswer is how many turns each answer that is no refusal brings.
	perAnswer = 2
	// fullyOpen is how many turns end the pacing.
	fullyOpen = 32
	// unnamed is how many turns a refusal takes that comes from in front of the
	// resource and names no priority level.
	unnamed = 15
	// mostLevels bounds how many priority levels are told apart.
	mostLevels = 64
)

// domain is what kinds share that may be overloaded: a priority level or the host.
type domain struct {
	turns [classes]turns
	why   string // the last refusal
}

func newDomain() domain {
	return domain{turns: [classes]turns{fresh: {open: true, burst: freshBurst}, retried: {open: true, burst: retriedBurst}}}
}

// turns bounds the requests of one class that are under way in a domain: by
// their number, which each answer raises and each refusal lowers, and which
// grows slowly with time. A server that answers nobody is asked each turnEvery.
type turns struct {
	open     bool // no bound
	burst    int
	left     int // while not open
	under    int // requests that are not answered
	at       time.Time
	narrowed time.Time // since when it is not open
}

// refill adds the turns that time has brought.
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

// room reports whether one more request may be sent.
func (b *turns) room(now time.Time) bool {
	if b.open {
		return true
	}
	b.refill(now)
	return b.left > b.under
}

// narrow ends the time without a bound.
func (b *turns) narrow(now time.Time) {
	if b.open {
		b.open, b.left, b.at, b.narrowed = false, b.burst, now, now
	}
}

// take has n turns fewer be left.
func (b *turns) take(n int, now time.Time) {
	b.narrow(now)
	b.refill(now)
	b.left = max(0, min(b.left, b.burst)-n)
}

// gain: a request that was sent at the given time is answered. What was sent
// before the first refusal says nothing of the time after it.
func (b *turns) gain(sent, now time.Time) {
	if b.open || sent.Before(b.narrowed) {
		return
	}
	b.refill(now)
	b.left += perAnswer
	b.open = b.left >= fullyOpen
}

// next is when time brings a turn; zero: it does not.
func (b *turns) next() time.Time {
	if b.open || b.left >= b.burst {
		return time.Time{}
	}
	return b.at.Add(turnEvery)
}

// verdict is what an answer says of the server's load.
type verdict uint8

const (
	verdictServed  verdict = iota // an answer that is no refusal, if perhaps another error
	verdictFaulty                 // an internal error
	verdictGaveUp                 // the caller waits no longer
	verdictLost                   // the connection broke off
	verdictDead                   // no connection
	verdictRefused                // 429 or 503, in the words of the kind's own storage
	verdictBlocked                // 429 or 503, from in front of it
)

// reply is how a request was answered.
type reply struct {
	verdict verdict
	level   string // UID of the priority level; empty: not named
	aside   bool   // not about the kind itself, as discovery for its sake
	sent    time.Time
	until   time.Time // the end of the Retry-After; zero: there is none
	why     string
}

// replied: the server has answered what t has sent about kind, or never will.
func (g *gateState) replied(t ticket, kind schema.GroupVersionKind, r reply, now time.Time) {
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

// levelNamed is the priority level that r names, which k is of from now on.
func (g *gateState) levelNamed(k *asked, r reply) *domain {
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

// gain: a request of the domain is answered.
func (d *domain) gain(sent, now time.Time) {
	for c := range d.turns {
		d.turns[c].gain(sent, now)
	}
}

// take has a refusal of class c take n turns. One that was not to be expected
// narrows the other class too: the kind comes again in it.
func (d *domain) take(c class, n int, why string, now time.Time) {
	d.why = why
	d.turns[c].take(n, now)
	if c == fresh {
		d.turns[retried].narrow(now)
	}
}

// drain takes all turns.
func (d *domain) drain(why string, now time.Time) {
	for c := range d.turns {
		d.take(class(c), d.turns[c].burst, why, now)
	}
}
