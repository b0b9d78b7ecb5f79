// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"maps"
)

// giveAgainLocked gives the objects of scopes that have been listed again to
// the handlers that ask for them. Those in changes have been given already.
func (c *core) giveAgainLocked(scopes []ScopeID, changes []change[Object]) {
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
		given[changes[i].key] = true
	}
	for _, scope := range scopes {
		if c.critical.byID[scope] == nil {
			continue // it has ended
		}
		unchanged := c.indexer.unchangedIn(scope, given)
		for _, m := range ask {
			m.giveAgain(scope, unchanged)
		}
	}
}

// giveAgain gives the objects of scope again, if the handler sees it.
func (l *listener[T]) giveAgain(scope ScopeID, unchanged iter.Seq[change[T]]) {
	l.mu.Lock()
	seen := l.mu.filter == nil || l.mu.filter.has(scope)
	l.mu.Unlock()
	if seen {
		l.giveAll(unchanged)
	}
}

// unchangedIn yields what scope shows as news that nothing has changed, save
// for the keys in given.
func (x *Indexer[T]) unchangedIn(scope ScopeID, given map[Key]bool) iter.Seq[change[T]] {
	x.mu.RLock()
	rows, bad := x.mu.rows.View(), maps.Clone(x.mu.bad)
	x.mu.RUnlock()
	return func(yield func(change[T]) bool) {
		for r := range rows.All() {
			if !r.shown().has(scope) || given[r.key] {
				continue
			}
			c := change[T]{
				key: r.key, slot: r.slot, resync: true, relisted: true,
				old: r.object, oldUID: r.uid, before: r.shown(), new: r.object, newUID: r.uid, after: r.shown(),
			}
			if u := bad[r.key]; u != nil {
				c.trouble = &trouble{before: r.scopes, after: r.scopes, was: u, is: u}
			}
			if !yield(c) {
				return
			}
		}
	}
}
