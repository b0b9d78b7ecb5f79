// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
)

// Witness is notified of each reconcile: when it begins and, by a call of end, when it
// has ended. The mutation detector of package informer implements it: it names the
// reconcilers that ran when a shared object was modified. The worker makes both calls,
// which delay it.
type Witness interface {
	Begin(who fmt.Stringer) (end func())
}

type runName struct {
	controller string
	key        any
}

// String returns controller and key.
func (r runName) String() string {
	return fmt.Sprintf("reconciler %q for %s", r.controller, keyText(r.key))
}
