// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// endedScope stands where the version is that a scope has reached: a scope that
// has ended is behind nothing, so nobody waits for it.
const endedScope = Version(math.MaxUint64)

// endAtOnce so many rows gain or lose a scope under one lock, so that reads go
// on.
const endAtOnce = 1024

// open begins a scope that is new, or that has the number of one which has
// ended.
func (x *Indexer[T]) open(scope ScopeID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, 0)
	x.mu.reached[scope] = 0
}

// lend has a scope that has just begun hold at once what others hold of it, so
// that nothing goes and comes again. Its first list says how it really is.
func (x *Indexer[T]) lend(scope ScopeID, has func(Key, T) bool) {
	x.turn.Lock()
	defer x.turn.Unlock()
	rows := x.view()
	for at := 0; at < rows.Len(); at += endAtOnce {
		x.lendRows(scope, at, min(at+endAtOnce, rows.Len()), has)
	}
}

func (x *Indexer[T]) lendRows(scope ScopeID, from, before int, has func(Key, T) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at := from; at < before; at++ {
		if r := x.mu.rows.At(at); !r.bad && has(r.key, r.object) {
			x.mu.rows.Edit(at).scopes = x.mu.sets.intern(r.scopes.with(scope))
		}
	}
}

// end takes a scope out of every row, and drops the rows that no other holds.
// may says whether another scope can hold a key: while such a one is behind the
// row's version, the version is remembered, so that it brings nothing older
// back. The caller then calls what passed returns.
func (x *Indexer[T]) end(scope ScopeID, may func(other ScopeID, key Key) bool) {
	x.turn.Lock()
	defer x.turn.Unlock()
	// The row that moves into the place of one that goes has been seen.
	for at := x.Len() - 1; at >= 0; at -= endAtOnce {
		x.endRows(scope, at, max(at-endAtOnce, -1), may)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, endedScope)
	for key, a := range x.mu.ahead.values {
		if a.value.in.has(scope) {
			x.mu.ahead.set(key, ahead{a.value.version, x.mu.sets.intern(a.value.in.without(scope))})
		}
	}
	x.mu.sets.forget(scope)
	x.sweepLocked()
	if !slices.ContainsFunc(x.mu.reached, func(v Version) bool { return v != endedScope }) {
		x.mu.tombs = ageing[types.UID, tombstone]{limit: tombstoneLimit, forgotten: x.mu.tombs.forgotten}
	}
}

// endRows takes a scope out of the rows from one place down to before another.
func (x *Indexer[T]) endRows(scope ScopeID, from, before int, may func(ScopeID, Key) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, endedScope)
	for at := from; at > before; at-- {
		if x.mu.rows.At(at).scopes.has(scope) {
			x.letGoLocked(at, scope, may)
		}
	}
}

func (x *Indexer[T]) letGoLocked(at int, scope ScopeID, may func(ScopeID, Key) bool) {
	r := x.mu.rows.At(at)
	rest := r.scopes.without(scope)
	if !rest.empty() {
		r = x.mu.rows.Edit(at)
		r.scopes, r.own = x.mu.sets.intern(rest), x.mu.sets.intern(r.own.without(scope))
		return
	}
	key, was := r.key, r.holding()
	for id, reached := range x.mu.reached {
		if reached < was.version && may(ScopeID(id), key) {
			x.mu.floors.set(key, max(was.version, x.mu.floors.get(key)))
			break
		}
	}
	x.removeLocked(key)
	x.mu.awaited.drop(key)
	x.mu.ahead.drop(key)
	x.wakeLocked(key, was, holding{})
}

// forget drops the sets that have id, which then may number another scope.
func (t *scopeSets) forget(id ScopeID) {
	if int(id) < len(t.single) {
		t.single[id] = nil
	}
	for key, s := range t.more {
		if s.has(id) {
			delete(t.more, key)
		}
	}
}

// seenDifferently is what one who looked through the filter was and looks
// through is from now on sees come and go. It is of the time of the call. A
// handler that joins has seen nothing before: its was is scopesOf().
func (x *Indexer[T]) seenDifferently(was, is *scopeSet) iter.Seq[change[T]] {
	x.mu.RLock()
	rows, bad := x.mu.rows.View(), maps.Clone(x.mu.bad)
	x.mu.RUnlock()
	return func(yield func(change[T]) bool) {
		for r := range rows.All() {
			before, after := r.scopes.seenBy(was), r.scopes.seenBy(is)
			if before == after {
				continue
			}
			c := change[T]{key: r.key, slot: r.slot, new: r.object, newUID: r.uid}
			if before {
				c.old, c.oldUID, c.before, c.leftScope, c.bytes = r.object, r.uid, r.shown(), true, r.bytes
			} else {
				c.after = r.shown()
			}
			switch u := bad[r.key]; {
			case !r.bad:
			case before:
				c.trouble = &trouble{before: r.scopes, was: u}
			default:
				c.trouble = &trouble{after: r.scopes, is: u}
			}
			if !yield(c) {
				return
			}
		}
	}
}
