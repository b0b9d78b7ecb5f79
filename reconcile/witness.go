// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
)

// Witness is told of each reconcile: who begins, and, by a call of end, that it has
// ended. The mutation detector of package informer is one: it names the reconcilers
// that ran when somebody changed a shared object. Both calls come from the worker and
// delay it.
type Witness interface {
	Begin(who fmt.Stringer) (end func())
}

// ReportTo has each reconcile reported to w, in place of the one before; nil: to
// nobody. A manager has its controllers report to its informers' mutation detector;
// without one: c.ReportTo(factory.MutationDetector()), if that is not nil. After Run
// has begun it is remembered as misuse.
func (c *Controller[K]) ReportTo(w Witness) {
	c.mu.Lock()
	began := c.mu.began != 0
	if !began {
		c.mu.witness = w
	}
	c.mu.Unlock()
	if began {
		c.misused(errors.New("report to a witness: the controller has begun to run; call ReportTo before"))
	}
}

// runName is what a Witness shows.
type runName struct {
	controller string
	key        any
}

// String names controller and key.
func (r runName) String() string {
	return fmt.Sprintf("reconciler %q for %s", r.controller, keyText(r.key))
}
