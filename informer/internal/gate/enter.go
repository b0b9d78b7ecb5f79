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

// ErrHeld: the gate has closed between passing it and sending the request,
// which was not sent.
var ErrHeld = errors.New("the server has asked to wait before more requests")

// Gate is what every request to one server passes. Safe for concurrent use.
type Gate struct {
	mu struct {
		sync.Mutex
		state *gateState
		looks map[ticket]chan struct{} // who waits is told to look again
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

// Pass is the right to send requests, got from a gate. One goroutine uses it.
// The methods of a nil pass do nothing.
type Pass struct {
	gate   *Gate
	ticket ticket
	ask    Ask
	sent   time.Time     // the last request
	sim    simhook.Hooks // nil: none
}

type passKey struct{}

// With is ctx for the requests that p is for.
func (p *Pass) With(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, p)
}

// PassOf is the pass that ctx carries; nil: none.
func PassOf(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

// Enter blocks until the request that a describes may be sent or ctx ends. The
// caller gives the pass back by done. show is called each time when it is known
// anew why the request waits.
func (g *Gate) Enter(ctx context.Context, a Ask, show func(Hold)) (*Pass, error) {
	g.mu.Lock()
	g.mu.last++
	p := &Pass{gate: g, ticket: g.mu.last, ask: a, sim: simhook.Of(ctx)}
	g.mu.Unlock()
	return p, p.wait(ctx, show)
}

// Again blocks until one more request of the same list may be sent, which
// keeps its place, or ctx ends.
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

// standing says whether p has passed, and if not, why.
func (g *Gate) standing(p *Pass) (h Hold, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.looks[p.ticket] == nil {
		return h, true
	}
	return g.mu.state.hold(p.ask, time.Now()), false
}

// Heard: the server has sent a part of its answer.
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

// Replied: the server has answered as r says, or the request has failed.
// retryAfter is what a refusal asks for.
func (p *Pass) Replied(r reply, retryAfter time.Duration) {
	now := time.Now()
	r.sent = p.sent
	if retryAfter = min(retryAfter, LongestRetryAfter); retryAfter > 0 {
		// A little later, so that processes which were told the same do not come
		// back together.
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

// Done gives back all that p holds. Calling it again does nothing.
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

// ClosedFor is until when requests about kind wait; in the past: they do not.
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

// lookLocked lets pass who may, and sets the alarm for the next look.
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

// poke does not wait: who has not looked since the last time will.
func poke(look chan struct{}) {
	select {
	case look <- struct{}{}:
	default:
	}
}
