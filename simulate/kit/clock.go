// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// clock is the virtual time of a run: its start, its phases, the instants and draws of
// its steps, and what holds all of them. Its group has the goroutines of the run.
type clock struct {
	start    time.Time
	healing  time.Time // end of the fault phase
	draws    *seededrand.Draws
	instants *seededrand.Instants

	ctx, serving, faulty, acting          context.Context // of the run, of the server, of the faults, of the actors
	end, endServing, endFaults, endActors context.CancelFunc
	group                                 sync.WaitGroup

	mu struct {
		sync.Mutex
		until time.Time // everything is held until then
		stood time.Time // end of the last hold
	}
}

func newClock(ctx context.Context, seed uint64, faultPhase time.Duration) *clock {
	now := time.Now()
	c := &clock{start: now, healing: now.Add(faultPhase), draws: seededrand.NewDraws(seed), instants: seededrand.NewInstants()}
	c.ctx, c.end = context.WithCancel(ctx)
	c.serving, c.endServing = context.WithCancel(ctx)
	c.faulty, c.endFaults = context.WithCancel(c.ctx)
	c.acting, c.endActors = context.WithCancel(c.ctx)
	return c
}

// rest blocks for d and then until a free instant, or until the run ends, and reports
// whether it reached that instant.
func (c *clock) rest(name string, d time.Duration) bool {
	return c.instants.Rest(c.ctx, name, d)
}

// pause waits the shortest time, in which everything that can run does.
func (c *clock) pause() { c.rest("pause", 0) }

// heal ends the faults' phase and what holds the run.
func (c *clock) heal() {
	c.endFaults()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.until = time.Time{}
}

func (c *clock) hold(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.until = c.within(d)
	c.mu.stood = c.mu.until
}

func (c *clock) stood() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.stood
}

func (c *clock) heldUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.until
}

// within returns d from now, or the end of the faults if that is earlier.
func (c *clock) within(d time.Duration) time.Time {
	if time.Until(c.healing) < d {
		return c.healing
	}
	return time.Now().Add(d)
}

// lasting calls over when d has passed, or when the faults end.
func (c *clock) lasting(draw string, d time.Duration, over func()) {
	ends := c.faultyFor(draw, d)
	c.group.Go(func() {
		ends()
		over()
	})
}

// faultyFor returns a function that blocks until d from now has passed, or the faults
// end.
func (c *clock) faultyFor(draw string, d time.Duration) (wait func()) {
	now := time.Now()
	over := c.instants.Place(now, now.Add(d+c.draws.UpTo(draw+" over", time.Millisecond)), draw+" over")
	return func() {
		if !c.instants.SleepAs(c.faulty, over) { // all end at the same time, but one after the other
			c.rest(draw+" healed", c.draws.UpTo(draw+" healed", time.Millisecond))
		}
	}
}
