// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// report logs how a reconcile ended: what a person must see at level 0, the rest at
// V(1). An error's own method that panics costs only its text.
func (c *Controller[K]) report(r *run[K], a action, res Result, err error) {
	if level := a.outcome.verbosity(); level > 0 && !c.log.V(level).Enabled() {
		return // without asking for the run's logger
	}
	log, key := textlog.Throttled(r.logger()).V(a.outcome.verbosity()), r.key
	failure := guarded(func() {
		switch a.outcome {
		case OutcomePanic:
			stack := ""
			if p, ok := errors.AsType[*PanicError](err); ok {
				stack = p.Stack
			}
			log.Error(err, "reconcile panicked, trying again with backoff", "attempts", c.queue.NumRequeues(key), "stack", stack)
		case OutcomeTimeout:
			log.Error(err, "reconcile cancelled at its hard deadline, trying again with backoff", "attempts", c.queue.NumRequeues(key), "hardDeadline", c.hard)
		case OutcomeError:
			log.Error(err, "reconcile met an error, trying again with backoff", "attempts", c.queue.NumRequeues(key))
		case OutcomeTerminal:
			log.Error(err, "reconcile met an error that retrying cannot heal, waiting for an event")
		case OutcomeConflict:
			log.Info("reconcile met a newer version, trying again when the cache has it", "conflict", err.Error())
		case OutcomeStopped:
			log.Info("reconcile stopped", "reason", err.Error())
		case OutcomeAfter, OutcomeRetry:
			log.Info("reconcile waits", "outcome", a.outcome, "after", a.after, "reason", res.Reason)
		case OutcomeDone:
			log.Info("reconcile done")
		}
	})
	if failure != nil {
		log.Error(failure, "the error of a reconcile panicked while it was read", "outcome", a.outcome, "stack", failure.Stack)
	}
}
