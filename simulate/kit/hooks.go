// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/simhook"
)

// A process implements simhook.Hooks for what it runs.
var _ simhook.Hooks = (*process)(nil)

// stepping is the window in which a step gets its instant.
const stepping = 50 * time.Microsecond

// Step blocks until an instant of its own, after the process is no longer held. The
// call of a handler may then stall.
func (p *process) Step(ctx context.Context, point, key string) {
	name := p.name + " " + point + " " + key
	p.step(ctx, name)
	if point != simhook.Deliver || ctx.Err() != nil {
		return
	}
	if d := p.next.stalled(); d > 0 {
		p.w.clock.instants.Rest(ctx, name, time.Until(p.w.clock.within(d)))
		p.step(ctx, name)
	}
}

func (p *process) step(ctx context.Context, name string) {
	for {
		from := time.Now()
		if until := p.heldUntil(); until.After(from) {
			from = until
		}
		step := p.w.clock.instants.Place(time.Now(), from.Add(p.w.clock.draws.UpTo(name, stepping)), name)
		if !p.w.clock.instants.SleepAs(ctx, step) || !p.heldUntil().After(time.Now()) {
			return
		}
	}
}

// Instant returns the first free instant at or after at.
func (p *process) Instant(at time.Time) time.Time { return p.w.clock.instants.Take(time.Now(), at) }

// Wall returns the time on the clock of the process.
func (p *process) Wall() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Round(0).Add(p.mu.wrong)
}

// Stands reports whether the process is held, as a paused one is.
func (p *process) Stands() bool { return p.heldUntil().After(time.Now()) }

// stepClock sets the error of the clock.
func (p *process) stepClock(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.wrong = by
}

// Now returns the wall-clock time of the process that ctx belongs to, for example the
// context of a reconcile; outside a simulation that of the machine. Use it in code that
// records the time, so that ClockStep affects it.
func Now(ctx context.Context) time.Time { return contextvalues.Now(ctx) }

// Random returns a draw by purpose.
func (p *process) Random(what string) float64 { return p.w.clock.draws.Float(p.name + " " + what) }

// Reconcile makes the reconcile panic or hang if a fault says so.
func (p *process) Reconcile(ctx context.Context, controller, key string) {
	m := p.next.mishap()
	switch {
	case m.panics:
		panic("simulated panic of a reconcile")
	case m.hangs > 0:
		p.w.clock.instants.Rest(ctx, p.name+" hang "+controller+" "+key, time.Until(p.w.clock.within(m.hangs)))
		if ctx.Err() != nil {
			p.apart("reconcile " + controller + " " + key)
		}
	}
}

// apart gives what ends while the process stops its own instant: at the end of the
// grace period much ends at once.
func (p *process) apart(name string) {
	if p.stops() {
		p.w.clock.rest(p.name+" end of "+name, p.w.clock.draws.UpTo(p.name+" end of "+name, stepping))
	}
}

// Note records an event, and tracks the state of keys.
func (p *process) Note(n simhook.Note) {
	if p.isDead() {
		return
	}
	p.mu.Lock()
	p.mu.hooked = true
	p.mu.Unlock()
	p.keep(n)
	if n.What == simhook.Idle {
		return // see look
	}
	p.w.record.add(Event{
		What: string(n.What), Who: p.name, Kind: n.Kind, Name: n.Name, Key: strings.TrimPrefix(n.Key, "/"), // as aim.KeyText writes it
		UID: n.UID, Version: n.Version,
		Reached: n.Reached, Own: n.Own, Whole: n.Whole, Quiet: n.Quiet, Count: n.Count, Causes: n.Causes, After: n.After, Text: n.Text,
	})
}

// keep tracks the state of a key.
func (p *process) keep(n simhook.Note) {
	switch n.What {
	case simhook.Enqueued, simhook.Canceled, simhook.Taken, simhook.Ended, simhook.Idle:
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
	if n.What != simhook.Ended {
		a.wake = n.Wake // whatever else happens to the key ends what Idle says; Ended follows it
	}
	switch n.What {
	case simhook.Enqueued:
		a.queued = true
	case simhook.Canceled:
		a.queued, a.again = false, false
	case simhook.Taken:
		a.wrote = false
		a.queued, a.running, a.again = false, true, false
		p.mu.works[n.Kind] = true
	case simhook.Ended:
		a.running = false
		a.call, a.timed = n.Wake, n.After > 0
		a.again = retried(n.Name)
		if a.last = ""; a.again {
			a.failed++
			a.last = n.Name + ": " + n.Text
		} else {
			a.failed = 0
		}
	}
}

// looked is a key to call at rest.
type looked struct {
	keyed
	wake func()
}

// looksOfAKey is how often a key that is not idle is called at rest.
const looksOfAKey = 3

// toLook returns the keys whose reconciles should find nothing to do, in the order of
// their names: idle ones, and those whose last reconcile has written or has set a timer,
// until one of them writes nothing.
func toLook(busy map[keyed]*attempt) (out []looked) {
	for k, a := range busy {
		switch {
		case a.wake != nil:
			out = append(out, looked{k, a.wake})
		case a.call != nil && a.idle() && (a.wrote || a.timed && a.looks == 0) && a.looks < looksOfAKey:
			out = append(out, looked{k, a.call})
		default:
			continue
		}
		a.looks++
	}
	slices.SortFunc(out, func(a, b looked) int {
		return cmp.Or(cmp.Compare(a.controller, b.controller), cmp.Compare(a.key, b.key))
	})
	return out
}

// standing counts the keys that are not at rest, and names one. Keys of a standby are
// at rest.
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
