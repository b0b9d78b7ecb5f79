// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// report logs the result of a reconcile: outcomes that need attention at level 0, the
// rest at V(1). If a method of the error panics, only its text is lost.
func (c *Controller[K]) report(r *run[K], a action, res Result, err error) {
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
