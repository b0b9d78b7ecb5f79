// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Outcome is how a reconcile ended.
type Outcome string

const (
	// OutcomeDone: nothing to do until the next event.
	OutcomeDone Outcome = "done"
	// OutcomeAfter: runs again when a time has passed.
	OutcomeAfter Outcome = "after"
	// OutcomeRetry: not there yet, runs again with backoff.
	OutcomeRetry Outcome = "retry"
	// OutcomeConflict: a write met a newer version, runs again with backoff or
	// when the cache has it.
	OutcomeConflict Outcome = "conflict"
	// OutcomeError: runs again with backoff.
	OutcomeError Outcome = "error"
	// OutcomeTerminal: an error that only an event can heal.
	OutcomeTerminal Outcome = "terminal"
	// OutcomePanic: runs again with backoff.
	OutcomePanic Outcome = "panic"
	// OutcomeTimeout: an error after the hard deadline, runs again with backoff.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeStopped: an error after the controller's end cut the reconcile off, or
	// because this process does not lead any more.
	OutcomeStopped Outcome = "stopped"
)

// action is what is done with a key after its reconcile.
type action struct {
	outcome Outcome
	// forget resets the backoff.
	forget bool
	// after which the key runs again; 0: not by time.
	after time.Duration
	// backoff: the key runs again with backoff.
	backoff bool
	// priority of the next run; nil: that of this one.
	priority *int
	// early, if not nil, tells when the key may run before its backoff ends.
	early ConflictWaiter
}

// decide is the only judgement about what follows a reconcile. err wins over res;
// cause is why the reconcile's context was cancelled, nil if it was not.
func decide(res Result, err, cause error) action {
	if err == nil {
		return decideResult(res)
	}
	if panicked, ok := err.(*PanicError); ok && panicked != nil {
		return action{outcome: OutcomePanic, backoff: true}
	}
	if every(err, isTerminal) {
		return action{outcome: OutcomeTerminal, forget: true}
	}
	if every(err, isStaleConflict) {
		early, _ := errors.AsType[ConflictWaiter](err)
		return action{outcome: OutcomeConflict, backoff: true, early: early}
	}
	if every(err, isNotLeading) {
		return action{outcome: OutcomeStopped, backoff: true}
	}
	if _, ok := errors.AsType[*DeadlineError](cause); ok {
		return action{outcome: OutcomeTimeout, backoff: true}
	}
	if errors.Is(cause, ErrStopped) {
		return action{outcome: OutcomeStopped}
	}
	return action{outcome: OutcomeError, backoff: true}
}

func decideResult(res Result) action {
	switch {
	case res.RequeueAfter > 0:
		return action{outcome: OutcomeAfter, forget: true, after: res.RequeueAfter, priority: res.Priority}
	case res.RequeueAfter < 0 || res.Retry:
		return action{outcome: OutcomeRetry, backoff: true, priority: res.Priority}
	}
	return action{outcome: OutcomeDone, forget: true}
}

// earlyRetries in a row may run before their backoff ends, as the cache has passed the
// version that failed. Who still conflicts then does not write from what the cache
// shows, and would go on as fast as the server answers.
const earlyRetries = 10

// settle carries out what decide says: the only place that tells the queue about
// another run. It is called while the key is held.
func (c *Controller[K]) settle(r *run[K], res Result, err error) {
	key := r.key
	a := action{outcome: OutcomePanic, backoff: true}
	failure := guarded(func() { a = decide(res, err, context.Cause(r)) })
	if failure != nil {
		err = failure // a method of the error itself panicked
	}
	// An event may have overtaken an earlier delay: this run decides anew.
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
	if a.early != nil && c.queue.NumRequeues(key) <= earlyRetries {
		c.awaitCache(key, a.early)
	}
	if c.sim != nil {
		c.noteEnded(key, a, err)
	}
	c.counters.add(a.outcome)
	c.failures.note(key, a, err)
	if c.traces != nil {
		c.traces.end(r, a, err)
	}
	c.report(r, a, res, err)
}

// retry adds key with backoff. A RateLimiter that panics is taken to say the longest
// wait that is usual.
func (c *Controller[K]) retry(key K, priority *int) {
	const longest = 1000 * time.Second
	if err := guarded(func() { c.again(key, workqueue.AddOptions{RateLimited: true}, priority) }); err != nil {
		c.own.Error(err, "the rate limiter panicked; waiting the longest time", "key", keyText(key), "wait", longest, "stack", err.Stack)
		c.queue.AddAfter(key, longest)
	}
}

// awaitCache has key added as soon as the cache has passed the version that
// failed. The next run of key ends the waiting.
func (c *Controller[K]) awaitCache(key K, w ConflictWaiter) {
	var stop func()
	if err := guarded(func() { stop = w.WhenPassed(func() { c.add(key, source.Cause{Source: cachePassed}) }) }); err != nil || stop == nil {
		return // the backoff stands
	}
	c.mu.Lock()
	c.mu.waits[key] = stop
	c.mu.Unlock()
}
