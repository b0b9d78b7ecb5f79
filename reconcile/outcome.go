// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"time"
)

// Outcome is how a reconcile ended.
type Outcome string

const (
	// OutcomeDone: nothing to do until the next event.
	OutcomeDone Outcome = "done"
	// OutcomeAfter: runs again after a time.
	OutcomeAfter Outcome = "after"
	// OutcomeRetry: not ready yet, runs again with backoff.
	OutcomeRetry Outcome = "retry"
	// OutcomeConflict: a write lost to a newer version, or a read depended on a write whose
	// effect is not known yet. It runs again with backoff, or when the cache has the newer
	// state.
	OutcomeConflict Outcome = "conflict"
	// OutcomeError: runs again with backoff.
	OutcomeError Outcome = "error"
	// OutcomeTerminal: an error that only an event can fix.
	OutcomeTerminal Outcome = "terminal"
	// OutcomePanic: runs again with backoff.
	OutcomePanic Outcome = "panic"
	// OutcomeTimeout: an error after the hard deadline, runs again with backoff.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeStopped: an error after the reconcile was cut off at the controller's end,
	// or because this process no longer leads.
	OutcomeStopped Outcome = "stopped"
)

// action is what happens to a key after its reconcile.
type action struct {
	outcome Outcome
	// forget resets the backoff.
	forget bool
	// after is the time until the next run; 0: none is scheduled.
	after time.Duration
	// backoff makes the key run again with backoff.
	backoff bool
	// priority of the next run; nil: that of this one.
	priority *int
	// early, if not nil, signals when the key may run before its backoff ends.
	early ConflictWaiter
	// parked makes early the only reason to run again, but for parkedAtMost.
	parked bool
}

// decide derives the action from the result of a reconcile. err wins over res; cause is
// why the reconcile's context was cancelled, nil if it was not.
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
		return action{outcome: OutcomeConflict, backoff: true, early: early, parked: every(err, isNotSettled)}
	}
	if every(err, isNotLeading) {
		return action{outcome: OutcomeStopped, backoff: true}
	}
	if _, ok := errors.AsType[*DeadlineError](cause); ok {
		return action{outcome: OutcomeTimeout, backoff: true}
	}
	if errors.Is(cause, ErrNotLeading) {
		return action{outcome: OutcomeStopped, backoff: true} // the queue keeps the key for when its shard is held again
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

// verbosity of the log line about an outcome.
func (o Outcome) verbosity() int {
	switch o {
	case OutcomeDone:
		return 2
	case OutcomeConflict, OutcomeStopped, OutcomeAfter, OutcomeRetry:
		return 1
	}
	return 0
}
