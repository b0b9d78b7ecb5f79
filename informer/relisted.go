// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

// giveAgainLocked gives the objects of scopes that have been listed again to
// the handlers that ask for them. Those in changes have been given already.
func (c *core) giveAgainLocked(scopes []base.ScopeID, changes []store.Change[Object]) {
	var ask []*member
	for _, m := range c.critical.members {
		if m.relists {
			ask = append(ask, m)
		}
	}
	if len(ask) == 0 || len(scopes) == 0 {
		return
	}
	given := make(map[Key]bool, len(changes))
	for i := range changes {
		given[changes[i].Key] = true
	}
	for _, scope := range scopes {
		if c.critical.byID[scope] == nil {
			continue // it has ended
		}
		unchanged := c.indexer.UnchangedIn(scope, given)
		for _, m := range ask {
			m.giveAgain(scope, unchanged)
		}
	}
}
