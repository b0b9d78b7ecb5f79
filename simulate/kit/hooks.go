// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// A process is the simhook.Hooks of what it runs.
var _ simhook.Hooks = (*process)(nil)

// stepping is within which time a step finds its instant.
const stepping = 50 * time.Microsecond

// Step blocks until an instant of its own, after the process is no longer held. A call
// of a handler then waits on, if that is its lot.
func (p *process) Step(ctx context.Context, point, key string) {
	name := p.name + " " + point + " " + key
	p.step(ctx, name)
	if point != simhook.Tell || ctx.Err() != nil {
		return
	}
	if d := p.nextStall(); d > 0 {
		p.w.instants.Rest(ctx, name, time.Until(p.w.within(d)))
		p.step(ctx, name)
	}
}

func (p *process) step(ctx context.Context, name string) {
	for {
		from := time.Now()
		if until := p.heldUntil(); until.After(from) {
			from = until
		}
		step := p.w.instants.Place(time.Now(), from.Add(p.w.draws.UpTo(name, stepping)), name)
		if !p.w.instants.SleepAs(ctx, step) || !p.heldUntil().After(time.Now()) {
			return
		}
	}
}

// Instant is at or the first instant after it that nobody has.
func (p *process) Instant(at time.Time) time.Time { return p.w.instants.Take(time.Now(), at) }

// Wall is the time on the clock of the process.
func (p *process) Wall() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Round(0).Add(p.mu.wrong)
}

// Stands reports whether the process is held, as a paused one is.
func (p *process) Stands() bool { return p.heldUntil().After(time.Now()) }

// stepClock has the clock be wrong by so much.
func (p *process) stepClock(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.wrong = by
}

// Now is the time on the wall clock of the process that ctx is of, such as the
// context of a reconcile; outside of a simulation that of the machine. Give it to
// code that asks for the time to write it down, so that ClockStep reaches it.
func Now(ctx context.Context) time.Time { return simhook.Wall(simhook.Of(ctx)) }

// Random is drawn by what it is for.
func (p *process) Random(what string) float64 { return p.w.draws.Float(p.name + " " + what) }

// Reconcile is where a reconcile panics or hangs, if that is its lot.
func (p *process) Reconcile(ctx context.Context, controller, key string) {
	m := p.nextMishap()
	switch {
	case m.panics:
		panic("simulated panic of a reconcile")
	case m.hangs > 0:
		p.w.instants.Rest(ctx, p.name+" hang "+controller+" "+key, time.Until(p.w.within(m.hangs)))
		if ctx.Err() != nil {
			p.apart("reconcile " + controller + " " + key)
		}
	}
}

// apart gives what ends while the process stops an instant of its own: when the time to
// drain is over, many things end at once.
func (p *process) apart(name string) {
	if p.stops() {
		p.w.instants.Rest(p.w.ctx, p.name+" end of "+name, p.w.draws.UpTo(p.name+" end of "+name, stepping))
	}
}

// Note adds what happened to the history, and keeps where the keys stand.
func (p *process) Note(n simhook.Note) {
	if p.isDead() {
		return
	}
	p.keep(n)
	p.w.note(Event{
		What: string(n.What), Who: p.name, Kind: n.Kind, Name: n.Name, Key: n.Key, UID: n.UID, Version: n.Version,
		Reached: n.Reached, Own: n.Own, Whole: n.Whole, Quiet: n.Quiet, Count: n.Count, After: n.After, Text: n.Text,
	})
}

// keep follows a key on its way.
func (p *process) keep(n simhook.Note) {
	switch n.What {
	case simhook.Enqueued, simhook.Taken, simhook.Ended:
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.mu.busy[keyed{n.Kind, n.Key}]
	if a == nil {
		a = &attempt{}
		p.mu.busy[keyed{n.Kind, n.Key}] = a
	}
	switch n.What {
	case simhook.Enqueued:
		a.queued = true
	case simhook.Taken:
		a.queued, a.running, a.again = false, true, false
		p.mu.works[n.Kind] = true
	case simhook.Ended:
		a.running = false
		a.again = retried(n.Name)
		if a.last = ""; a.again {
			a.failed++
			a.last = n.Name + ": " + n.Text
		} else {
			a.failed = 0
		}
	}
}

// standing counts the keys that are not at rest, and names one. Those that wait for
// the process to be elected are.
func (p *process) standing() (busy int, one string) {
	standby := p.standsBy()
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, a := range p.mu.busy {
		if standby && !p.mu.works[k.controller] {
			continue
		}
		if name := k.controller + " " + k.key; !a.idle() && (one == "" || name < one) {
			one = name
		}
		if !a.idle() {
			busy++
		}
	}
	return busy, one
}
