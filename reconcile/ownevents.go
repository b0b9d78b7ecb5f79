// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
)

// filterOf returns what the sources of c need not add.
func filterOf[K comparable](c *Controller[K]) ownevents.Filter[K] {
	return ownevents.Filter[K]{Absent: c.absent, Ledger: c.wrote, Explain: c.recorder != nil}
}

// writing is a run whose controller keeps a ledger of own writes. It implements ownevents.Run.
type writing[K comparable] struct{ *run[K] }

// Wrote records a write of the reconcile.
func (w writing[K]) Wrote(did ownevents.Write) { w.controller.wrote.Wrote(w.key, did) }

// endOwn ends the reconcile in the ledger, and reports what that found.
func (r *run[K]) endOwn(outcome Outcome) {
	c := r.controller
	idle, found := c.wrote.End(r.key, outcome == OutcomeDone)
	if idle && c.sim != nil {
		simulated[K]{c}.reportIdle(r.key)
	}
	if found == nil {
		return
	}
	if c.sim != nil {
		simulated[K]{c}.reportUnfinished(r.key, found)
	}
	c.unfinished.Do(func() {
		r.logger().Info("Reconcile was done too early: the next one wrote more, and nothing else had "+
			"changed. With Options.OmitOwnEvents do all in one reconcile, or return Retry or After",
			"wrote", found.Last.String(), "wroteNext", found.More.String())
	})
}

// absentIn reports keys whose reconcile would find no object and do nothing, and removes
// them from the queue of c: nobody takes them from that of a standby. A key that is retried
// is none of them: the reconcile ends its failures.
func absentIn[T kube.Object](lister informer.Lister[T], c *Controller[Key]) func(key Key) bool {
	gone := func(key Key) bool {
		_, err := lister.Get(key)
		return apierrors.IsNotFound(err)
	}
	queue, cancels := c.queue.(interface{ Cancel(Key) bool })
	return func(key Key) bool {
		if c.queue.NumRequeues(key) > 0 || !gone(key) {
			return false
		}
		c.recorder.forget(key)
		woken := c.drop(key)
		if canceled := cancels && queue.Cancel(key); !canceled && !woken {
			return true
		}
		forgetCanceled(c, key, false)
		return gone(key) // what was canceled may have been added for a new object
	}
}

// forgetCanceled ends what waits for the next run of a key that was canceled. taken: a worker had it.
func forgetCanceled[K comparable](c *Controller[K], key K, taken bool) {
	if c.sim != nil {
		reportCanceled(c, key, taken)
	}
	c.queue.Forget(key)
	c.waits.end(key)
	caused := c.causes.take(key)
	c.causes.release(&caused)
	c.failures.record(key, action{}, nil)
	if c.traces != nil {
		c.traces.take(key)
	}
}
