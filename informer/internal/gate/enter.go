// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// ErrHeld means that the gate closed after the request passed it. The request
// was not sent.
var ErrHeld = errors.New("the server has asked to wait before more requests")

// Gate admits the requests to one server. Safe for concurrent use.
type Gate struct {
	mu struct {
		sync.Mutex
		state *gateState
		looks map[ticket]chan struct{} // wake the waiting requests
		last  ticket
		alarm *time.Timer
	}
}

func NewGate(places int) *Gate {
	g := &Gate{}
	g.mu.state = newGateState(places)
	g.mu.looks = make(map[ticket]chan struct{})
	return g
}

// Pass is the right to send requests, granted by a gate. It is used by one
// goroutine. A nil Pass does nothing.
type Pass struct {
	gate   *Gate
	ticket ticket
	ask    Ask
	sent   time.Time // when the last request was sent
	sim    simhook.Hooks
}

type passKey struct{}

// With returns a context for the requests of p.
func (p *Pass) With(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, p)
}

// PassOf returns the pass in ctx, or nil.
func PassOf(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

// Enter blocks until the request described by a may be sent or ctx ends. The
// caller returns the pass with Done. show is called whenever the reason to wait
// changes.
func (g *Gate) Enter(ctx context.Context, a Ask, show func(Hold)) (*Pass, error) {
	g.mu.Lock()
	g.mu.last++
	p := &Pass{gate: g, ticket: g.mu.last, ask: a, sim: simhook.Of(ctx)}
	g.mu.Unlock()
	return p, p.wait(ctx, show)
}

// Again blocks until another request of the same list, which keeps its place,
// may be sent or ctx ends.
func (p *Pass) Again(ctx context.Context, show func(Hold)) error {
	if p == nil {
		return nil
	}
	p.ask.List = false
	return p.wait(ctx, show)
}

func (p *Pass) wait(ctx context.Context, show func(Hold)) error {
	g := p.gate
	p.ask.since = time.Now()
	look := make(chan struct{}, 1)
	g.mu.Lock()
	g.mu.looks[p.ticket] = look
	g.mu.state.arrive(p.ticket, p.ask)
	g.lookLocked()
	g.mu.Unlock()
	for {
		h, admitted := g.standing(p)
		if admitted {
			return nil
		}
		if h.Why != "" {
			show(h)
		}
		select {
		case <-look:
		case <-ctx.Done():
			p.Done()
			if h.Why != "" {
				return fmt.Errorf("%s: %w", h.Why, context.Cause(ctx))
			}
			return context.Cause(ctx)
		}
	}
}

// standing reports whether p has passed, and if not, why.
func (g *Gate) standing(p *Pass) (h Hold, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.looks[p.ticket] == nil {
		return h, true
	}
	return g.mu.state.hold(p.ask, time.Now()), false
}

// Heard records that the server has sent part of its answer.
func (p *Pass) Heard() {
	if p != nil && p.ask.Contact != nil {
		p.ask.Contact.Store(time.Now().UnixNano())
	}
}

// Begin reports whether the request may still be sent: the gate has not closed
// since p passed it.
func (p *Pass) Begin() bool {
	g, now := p.gate, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.state.of(p.ask.Kind).until.After(now) {
		return false
	}
	g.mu.state.send(p.ticket, p.ask.Kind, now)
	p.sent = now
	return true
}

// Replied records the answer r, or that the request failed. retryAfter is what
// a refusal asks for.
func (p *Pass) Replied(r reply, retryAfter time.Duration) {
	now := time.Now()
	r.sent = p.sent
	if retryAfter = min(retryAfter, LongestRetryAfter); retryAfter > 0 {
		// Spread, so that processes with the same answer do not return
		// together.
		retryAfter += simhook.Duration(p.sim, "gate "+p.ask.Kind.GroupKind().String(), retryAfter/10)
		r.until = now.Add(retryAfter)
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.state.replied(p.ticket, p.ask.Kind, r, now)
	if r.verdict != verdictServed && r.verdict != verdictGaveUp {
		for _, look := range g.mu.looks {
			poke(look)
		}
	}
	g.lookLocked()
}

// Done releases all that p holds. Further calls do nothing.
func (p *Pass) Done() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.looks, p.ticket)
	g.mu.state.leave(p.ticket)
	g.lookLocked()
}

// ClosedFor returns until when requests for kind wait; in the past: they do
// not.
func (g *Gate) ClosedFor(kind schema.GroupVersionKind) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.state.of(kind).until
}

func (g *Gate) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lookLocked()
}

// lookLocked admits requests and sets the alarm for the next look.
func (g *Gate) lookLocked() {
	now := time.Now()
	for _, t := range g.mu.state.admit(now) {
		poke(g.mu.looks[t])
		delete(g.mu.looks, t)
	}
	next := g.mu.state.next(now)
	switch {
	case next.IsZero() && g.mu.alarm != nil:
		g.mu.alarm.Stop()
	case next.IsZero():
	case g.mu.alarm == nil:
		g.mu.alarm = time.AfterFunc(next.Sub(now), g.look)
	default:
		g.mu.alarm.Reset(next.Sub(now))
	}
}

// poke wakes a waiter without blocking; pokes coalesce.
func poke(look chan struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}
