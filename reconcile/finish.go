// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// earlyRetries is how many consecutive retries may run before their backoff ends,
// because the cache has passed the version that failed. A key that still conflicts does
// not write from the cache, and would retry as fast as the server answers.
const earlyRetries = 10

// parkedAtMost is how long a key waits for the effect of a write without a look.
const parkedAtMost = 10 * time.Minute

// finish decides what follows a reconcile, schedules that, and ends the probes. It is called
// while the worker has the key.
func (c *Controller[K]) finish(r *run[K], res Result, err error) {
	a := action{outcome: OutcomePanic, backoff: true}
	if failure := guarded(func() { a = decide(res, err, context.Cause(r)) }); failure != nil {
		err = failure // a method of the error panicked
	}
	e := ending{a, res, err, time.Since(r.since)}
	if c.wrote != nil {
		r.endOwn(a.outcome) // before the key may be added for a conflict that has passed
	}
	c.schedule(r.key, a)
	defer r.cancel(nil)
	for _, p := range slices.Backward(c.probes) {
		p.end(r, e)
	}
}

// schedule carries out the result of decide. Only schedule requeues keys after a reconcile.
func (c *Controller[K]) schedule(key K, a action) {
	// An event may have overtaken an earlier delay: this run decides again.
	c.queue.Withdraw(key)
	if a.forget {
		c.queue.Forget(key)
	}
	if a.after > 0 {
		c.again(key, workqueue.AddOptions{After: a.after}, a.priority)
	}
	if a.backoff {
		c.retry(key, a.priority)
	}
	// What is parked waits for the server each time. The wait of a NaN could not be ended.
	if early := a.parked || c.queue.NumRequeues(key) <= earlyRetries; a.early != nil && early && key == key {
		if a.parked { // while the server is away, a run would only find that nothing is known yet
			c.queue.Withdraw(key)
			c.again(key, workqueue.AddOptions{After: parkedAtMost}, a.priority)
		}
		c.awaitCache(key, a.early)
	}
}

// retry adds key with backoff. If the RateLimiter panics, the longest usual delay
// applies.
func (c *Controller[K]) retry(key K, priority *int) {
	const longest = 1000 * time.Second
	if err := guarded(func() { c.again(key, workqueue.AddOptions{RateLimited: true}, priority) }); err != nil {
		c.own.Error(err, "The rate limiter panicked; using the longest backoff", "key", keyText(key), "wait", longest, "stack", err.Stack)
		c.queue.AddAfter(key, longest)
	}
}

// awaitCache adds key as soon as the cache has passed the version that failed. The next
// run of key ends the wait.
func (c *Controller[K]) awaitCache(key K, w ConflictWaiter) {
	var stop func()
	if err := guarded(func() { stop = w.WhenPassed(func() { c.add(key, source.Cause{Source: source.Cache}) }) }); err != nil || stop == nil {
		return // the backoff remains
	}
	c.waits.begin(key, stop)
}

// reporter logs the result of each reconcile: outcomes that need attention at level 0, the
// rest at V(1). If a method of the error panics, only its text is lost.
type reporter[K comparable] struct{ *Controller[K] }

func (reporter[K]) begin(*run[K]) {}

func (c reporter[K]) end(r *run[K], e ending) {
	a, res, err := e.action, e.res, e.err
	if level := a.outcome.verbosity(); level > 0 && !c.log.V(level).Enabled() {
		return // without creating the run's logger
	}
	log, key := textlog.Throttled(r.logger()).V(a.outcome.verbosity()), r.key
	failure := guarded(func() {
		switch a.outcome {
		case OutcomePanic:
			stack := ""
			if p, ok := errors.AsType[*PanicError](err); ok {
				stack = p.Stack
			}
			log.Error(err, "Reconcile panicked; retrying with backoff", "attempts", c.queue.NumRequeues(key), "stack", stack)
		case OutcomeTimeout:
			log.Error(err, "Reconcile exceeded its hard deadline; retrying with backoff", "attempts", c.queue.NumRequeues(key), "hardDeadline", c.watchdog.hard)
		case OutcomeError:
			log.Error(err, "Reconcile failed; retrying with backoff", "attempts", c.queue.NumRequeues(key))
		case OutcomeTerminal:
			log.Error(err, "Reconcile failed; not retrying until the next event")
		case OutcomeConflict:
			log.Info("Reconcile was ahead of the cache; retrying when the cache is up to date", "reason", err.Error())
		case OutcomeStopped:
			log.Info("Reconcile stopped", "reason", err.Error())
		case OutcomeAfter, OutcomeRetry:
			log.Info("Reconcile will run again", "outcome", a.outcome, "after", a.after, "reason", res.Reason)
		case OutcomeDone:
			log.Info("Reconcile done")
		}
	})
	if failure != nil {
		log.Error(failure, "Reading the error of a reconcile panicked", "outcome", a.outcome, "stack", failure.Stack)
	}
}
