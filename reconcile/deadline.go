// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// watchdog watches over the reconciles of the workers. It sleeps while none runs, and
// otherwise until the first deadline of the running ones, so that reconciles need no
// timers.
type watchdog[K comparable] struct {
	workers           []worker[K]
	soft, hard, drain time.Duration
	overdue           *atomic.Uint64 // counts the reconciles that have passed the soft deadline
	asleep            atomic.Bool
	wake              chan struct{} // with a buffer of one
}

// expect is called after a reconcile has been recorded and before it begins.
func (d *watchdog[K]) expect() {
	if d.asleep.Load() {
		select {
		case d.wake <- struct{}{}:
		default: // already woken
		}
	}
}

// watch reports the reconciles that pass the soft deadline and cancels those that pass
// the hard one. After the end of ctx it cuts off those that still run after the drain
// timeout, or at once when cut is closed. It returns when idle is closed.
func (d *watchdog[K]) watch(ctx context.Context, log logr.Logger, cut <-chan struct{}, cutOff context.CancelCauseFunc, idle <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-timer.C:
		case <-d.wake:
		case <-ended:
			ended, late = nil, time.After(d.drainTime(ctx))
			continue
		case <-late:
			d.reportLate(ctx, log)
			cutOff(ErrStopped)
			continue
		case <-cut:
			cut = nil
			cutOff(ErrStopped)
			continue
		case <-idle:
			return
		}
		if next, waits := d.inspect(); waits {
			timer.Reset(time.Until(next))
		}
	}
}

// inspect checks all running reconciles, and returns when to check again, if any runs.
func (d *watchdog[K]) inspect() (next time.Time, waits bool) {
	first := d.firstLimit()
	if first < 0 {
		return next, false
	}
	d.asleep.Store(true) // before the check: a reconcile that begins later wakes the watch
	now := time.Now()
	next = now.Add(first) // later reconciles have no earlier deadline
	for i := range d.workers {
		due, more := d.check(&d.workers[i], now)
		if more && due.Before(next) {
			next = due
		}
		waits = waits || more
	}
	if waits {
		d.asleep.Store(false)
	}
	return next, waits
}

// firstLimit returns the shorter of the two deadlines. Negative: there is none.
func (d *watchdog[K]) firstLimit() time.Duration {
	if d.soft < 0 || d.hard < 0 {
		return max(d.soft, d.hard)
	}
	return min(d.soft, d.hard)
}

// check reports or cancels w's reconcile if a deadline has passed, and returns its next
// deadline, if any.
func (d *watchdog[K]) check(w *worker[K], now time.Time) (next time.Time, more bool) {
	r, stack := d.overrun(w, now)
	if r == nil {
		return next, false
	}
	if stack != "" {
		r.overdue = true
		d.overdue.Add(1)
		textlog.Warn(textlog.Throttled(r.logger()), nil, "Reconcile still runs after its soft deadline", "softDeadline", d.soft, "stack", stack)
	}
	if hard := r.since.Add(d.hard); d.hard >= 0 {
		if now.Before(hard) {
			next, more = hard, true
		} else {
			r.cancel(&DeadlineError{Limit: d.hard})
		}
	}
	if soft := r.since.Add(d.soft); d.soft >= 0 && !r.overdue && (!more || soft.Before(next)) {
		next, more = soft, true
	}
	return next, more
}

// overrun returns w's reconcile, and its stack if it has just passed the soft deadline.
// It reads the stack under the lock, so that the worker cannot move on to another key.
func (d *watchdog[K]) overrun(w *worker[K], now time.Time) (r *run[K], stack string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r = w.mu.run
	if r != nil && d.soft >= 0 && !r.overdue && !now.Before(r.since.Add(d.soft)) {
		stack = new(stacks.Dump).Of(w.mu.goroutine)
	}
	return r, stack
}

// drainTime returns how long reconciles in flight may continue after the end of ctx.
func (d *watchdog[K]) drainTime(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), ErrCutOff) {
		return 0
	}
	return max(d.drain, 0)
}

// reportLate names the reconciles that did not end within the drain timeout.
func (d *watchdog[K]) reportLate(ctx context.Context, log logr.Logger) {
	for _, r := range d.running() {
		textlog.Warn(log, nil, "Reconcile still runs at the end of the drain timeout; cancelling it",
			"key", r.Key, "reconcileID", r.ID, "running", time.Since(r.Since).Round(time.Millisecond), "drainTimeout", d.drainTime(ctx))
	}
}

// running returns the running reconciles, longest first.
func (d *watchdog[K]) running() []Running {
	var all []Running
	for i := range d.workers {
		if r := d.workers[i].held(); r != nil {
			all = append(all, Running{Key: keyText(r.key), ID: r.id(), Since: r.since})
		}
	}
	slices.SortFunc(all, func(a, b Running) int { return a.Since.Compare(b.Since) })
	return all
}

// stacks is for Controller.Stacks.
func (d *watchdog[K]) stacks(before time.Time) map[string]string {
	type lost struct {
		worker *worker[K]
		run    *run[K]
		id     stacks.ID
	}
	var all []lost
	for i := range d.workers {
		w := &d.workers[i]
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
