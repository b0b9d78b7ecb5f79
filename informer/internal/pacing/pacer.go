// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// ErrHeld means that requests were held after this one had passed. The request
// was not sent.
var ErrHeld = errors.New("the server has asked to wait before more requests")

// Pacer admits the requests to one server. Safe for concurrent use.
type Pacer struct {
	mu struct {
		sync.Mutex
		state *pacerState
		looks map[ticket]chan struct{} // wake the waiting requests
		last  ticket
		alarm *time.Timer
	}
}

func NewPacer(places int) *Pacer {
	g := &Pacer{}
	g.mu.state = newPacerState(places)
	g.mu.looks = make(map[ticket]chan struct{})
	return g
}

// Pass is the right to send requests, granted by a Pacer. It is used by one
// goroutine. A nil Pass does nothing.
type Pass struct {
	pacer  *Pacer
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

// Wait blocks until the request described by a may be sent or ctx ends. The
// caller returns the pass with Done. show is called whenever the reason to wait
// changes.
func (g *Pacer) Wait(ctx context.Context, a Ask, show func(Hold)) (*Pass, error) {
	g.mu.Lock()
	g.mu.last++
	p := &Pass{pacer: g, ticket: g.mu.last, ask: a, sim: simhook.Of(ctx)}
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
	g := p.pacer
	p.ask.since = time.Now()
	look := make(chan struct{}, 1)
	g.mu.Lock()
	g.mu.looks[p.ticket] = look
	g.mu.state.arrive(p.ticket, p.ask)
	g.admitLocked()
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
func (g *Pacer) standing(p *Pass) (h Hold, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.looks[p.ticket] == nil {
		return h, true
	}
	return g.mu.state.hold(p.ask, time.Now()), false
}

// Received records that the server has sent part of its answer.
func (p *Pass) Received() {
	if p != nil && p.ask.Contact != nil {
		p.ask.Contact.Store(time.Now().UnixNano())
	}
}

// Begin reports whether the request may still be sent: its kind is not held
// since p passed it.
func (p *Pass) Begin() bool {
	g, now := p.pacer, time.Now()
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
	g := p.pacer
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.state.replied(p.ticket, p.ask.Kind, r, now)
	if r.verdict != verdictServed && r.verdict != verdictGaveUp {
		for _, look := range g.mu.looks {
			poke(look)
		}
	}
	g.admitLocked()
}

// Done releases all that p holds. Further calls do nothing.
func (p *Pass) Done() {
	if p == nil {
		return
	}
	g := p.pacer
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.looks, p.ticket)
	g.mu.state.leave(p.ticket)
	g.admitLocked()
}

// HeldUntil returns until when requests for kind wait; in the past: they do
// not.
func (g *Pacer) HeldUntil(kind schema.GroupVersionKind) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.state.of(kind).until
}

func (g *Pacer) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitLocked()
}

// admitLocked admits requests and sets the alarm for the next look.
func (g *Pacer) admitLocked() {
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
		g.mu.alarm = time.AfterFunc(next.Sub(now), g.admit)
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
