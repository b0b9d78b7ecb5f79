// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// earlyRetries is how many consecutive retries may run before their backoff ends,
// because the cache has passed the version that failed. A key that still conflicts does
// not write from the cache, and would retry as fast as the server answers.
const earlyRetries = 10

// parkedAtMost is how long a key waits for the effect of a write without a look.
const parkedAtMost = 10 * time.Minute

// settle carries out the result of decide. Only settle requeues keys after a reconcile.
// It is called while the key is held.
func (c *Controller[K]) settle(r *run[K], res Result, err error) {
	key := r.key
	a := action{outcome: OutcomePanic, backoff: true}
	failure := guarded(func() { a = decide(res, err, context.Cause(r)) })
	if failure != nil {
		err = failure // a method of the error panicked
	}
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
	if c.sim != nil {
		c.noteEnded(key, a, err)
	}
	c.counters.add(a.outcome)
	c.failures.note(key, a, err)
	if c.traces != nil {
		c.traces.end(r.Context, key, r.priority, a, err)
	}
	c.report(r, a, res, err)
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
	if err := guarded(func() { stop = w.WhenPassed(func() { c.add(key, source.Cause{Source: cachePassed}) }) }); err != nil || stop == nil {
		return // the backoff remains
	}
	c.waits.begin(key, stop)
}
