// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
)

// Witness is told of each reconcile: who begins, and, by a call of end, that it has
// ended. The mutation detector of package informer is one: it names the reconcilers
// that ran when somebody changed a shared object. Both calls come from the worker and
// delay it.
type Witness interface {
	Begin(who fmt.Stringer) (end func())
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
