// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// watchdog wakes the watch. The watch sleeps while no reconcile runs, and otherwise
// until the first deadline of the running ones, so that reconciles need no timers.
type watchdog struct {
	asleep atomic.Bool
	wake   chan struct{} // with a buffer of one
}

// expect is called after a reconcile has been recorded and before it begins.
func (d *watchdog) expect() {
	if d.asleep.Load() {
		select {
		case d.wake <- struct{}{}:
		default: // already woken
		}
	}
}

// watch reports the reconciles that pass the soft deadline and cancels those that pass
// the hard one. After the end of ctx it cuts off those that still run after the drain
// timeout, or at once when the manager asks for it. It returns when idle is closed.
func (c *Controller[K]) watch(ctx context.Context, cutOff context.CancelCauseFunc, idle <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended, late, cut := ctx.Done(), (<-chan time.Time)(nil), c.cutOff
	for {
		select {
		case <-timer.C:
		case <-c.watchdog.wake:
		case <-ended:
			ended, late = nil, time.After(c.drainTime(ctx))
			continue
		case <-late:
			c.reportLate(ctx)
			cutOff(ErrStopped)
			continue
		case <-cut:
			cut = nil
			cutOff(ErrStopped)
			continue
		case <-idle:
			return
		}
		if next, waits := c.inspect(); waits {
			timer.Reset(time.Until(next))
		}
	}
}

// inspect checks all running reconciles, and returns when to check again, if any runs.
func (c *Controller[K]) inspect() (next time.Time, waits bool) {
	first := c.firstLimit()
	if first < 0 {
		return next, false
	}
	c.watchdog.asleep.Store(true) // before the check: a reconcile that begins later wakes the watch
	now := time.Now()
	next = now.Add(first) // later reconciles have no earlier deadline
	for i := range c.workers {
		due, more := c.check(&c.workers[i], now)
		if more && due.Before(next) {
			next = due
		}
		waits = waits || more
	}
	if waits {
		c.watchdog.asleep.Store(false)
	}
	return next, waits
}

// firstLimit returns the shorter of the two deadlines. Negative: there is none.
func (c *Controller[K]) firstLimit() time.Duration {
	if c.soft < 0 || c.hard < 0 {
		return max(c.soft, c.hard)
	}
	return min(c.soft, c.hard)
}

// check reports or cancels w's reconcile if a deadline has passed, and returns its next
// deadline, if any.
func (c *Controller[K]) check(w *worker[K], now time.Time) (next time.Time, more bool) {
	r, stack := c.overrun(w, now)
	if r == nil {
		return next, false
	}
	if stack != "" {
		r.overdue = true
		c.counters.overdue.Add(1)
		textlog.Warn(textlog.Throttled(r.logger()), nil, "Reconcile still runs after its soft deadline", "softDeadline", c.soft, "stack", stack)
	}
	if hard := r.since.Add(c.hard); c.hard >= 0 {
		if now.Before(hard) {
			next, more = hard, true
		} else {
			r.cancel(&DeadlineError{Limit: c.hard})
		}
	}
	if soft := r.since.Add(c.soft); c.soft >= 0 && !r.overdue && (!more || soft.Before(next)) {
		next, more = soft, true
	}
	return next, more
}

// overrun returns w's reconcile, and its stack if it has just passed the soft deadline.
// It reads the stack under the lock, so that the worker cannot move on to another key.
func (c *Controller[K]) overrun(w *worker[K], now time.Time) (r *run[K], stack string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r = w.mu.run
	if r != nil && c.soft >= 0 && !r.overdue && !now.Before(r.since.Add(c.soft)) {
		stack = new(stacks.Dump).Of(w.mu.goroutine)
	}
	return r, stack
}

// Stacks returns the stacks of the reconciles that have been running since before a
// time, by ID. If there are any, it briefly stops the whole process, so call it only to
// diagnose a problem.
func (c *Controller[K]) Stacks(before time.Time) map[string]string {
	type lost struct {
		worker *worker[K]
		run    *run[K]
		id     stacks.ID
	}
	var all []lost
	for i := range c.workers {
		w := &c.workers[i]
		w.mu.Lock()
		if r := w.mu.run; r != nil && r.since.Before(before) {
			all = append(all, lost{w, r, w.mu.goroutine})
		}
		w.mu.Unlock()
	}
	if len(all) == 0 {
		return nil
	}
	dump := new(stacks.Dump)
	out := map[string]string{}
	for _, l := range all {
		stack := dump.Of(l.id)
		if l.worker.held() == l.run { // else the worker has moved on meanwhile
			out[l.run.id()] = stack
		}
	}
	return out
}

// drainTime returns how long reconciles in flight may continue after the end of ctx.
func (c *Controller[K]) drainTime(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), ErrCutOff) {
		return 0
	}
	return max(c.drain, 0)
}

// reportLate names the reconciles that did not end within the drain timeout.
func (c *Controller[K]) reportLate(ctx context.Context) {
	for _, r := range c.running() {
		textlog.Warn(c.own, nil, "Reconcile still runs at the end of the drain timeout; cancelling it",
			"key", r.Key, "reconcileID", r.ID, "running", time.Since(r.Since).Round(time.Millisecond), "drainTimeout", c.drainTime(ctx))
	}
}
