// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// endedScope is the reached version of an ended scope: it lags behind nothing.
const endedScope = kube.Version(math.MaxUint64)

// endAtOnce is how many rows gain or lose a scope under one lock, so that reads
// continue.
const endAtOnce = 1024

// Open begins a scope that is new, or has the number of an ended one.
func (x *Indexer) Open(scope base.ScopeID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, 0)
	x.mu.reached[scope] = 0
}

// Lend makes scopes that have just begun hold at once the objects of others
// that they cover, so that they do not disappear and return. Their first lists
// correct this. of yields those of the scopes that have an object.
func (x *Indexer) Lend(of func(kube.Key, kube.Object) iter.Seq[base.ScopeID]) {
	x.turn.Lock()
	defer x.turn.Unlock()
	rows := x.View()
	for at := 0; at < rows.Len(); at += endAtOnce {
		x.lendRows(at, min(at+endAtOnce, rows.Len()), of)
	}
}

func (x *Indexer) lendRows(from, before int, of func(kube.Key, kube.Object) iter.Seq[base.ScopeID]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at := from; at < before; at++ {
		r := x.mu.rows.At(at)
		if r.Undecodable {
			continue
		}
		for scope := range of(r.Key, r.Object) {
			r = x.mu.rows.Edit(at)
			r.Scopes = x.mu.sets.intern(r.Scopes.With(scope))
		}
	}
}

// End removes scopes from every row and drops rows that no other scope holds.
// may yields the other scopes that can hold a key: while one of them is behind
// the row's version, the version is remembered so that nothing older returns.
// Afterwards the caller calls the functions that Passed returns. It looks at
// each row once, however many scopes end.
func (x *Indexer) End(scopes *ScopeSet, may func(key kube.Key) iter.Seq[base.ScopeID]) {
	x.turn.Lock()
	defer x.turn.Unlock()
	// A row that fills a removed row's place was visited before.
	for at := x.Len() - 1; at >= 0; at -= endAtOnce {
		x.endRows(scopes, at, max(at-endAtOnce, -1), may)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	endReachedLocked(x, scopes)
	for key, a := range x.mu.ahead.values {
		if a.value.in.SeenBy(scopes) {
			x.mu.ahead.set(key, ahead{a.value.version, x.mu.sets.intern(a.value.in.without(scopes))})
		}
	}
	x.mu.sets.forget(scopes)
	x.sweepLocked()
	if !slices.ContainsFunc(x.mu.reached, func(v kube.Version) bool { return v != endedScope }) {
		x.mu.tombs = ageing[types.UID, tombstone]{limit: tombstoneLimit, forgotten: x.mu.tombs.forgotten}
	}
}

func endReachedLocked(x *Indexer, scopes *ScopeSet) {
	for scope := range scopes.All() {
		x.reachLocked(scope, endedScope)
	}
}

// endRows removes scopes from the rows from one position down to before
// another.
func (x *Indexer) endRows(scopes *ScopeSet, from, before int, may func(kube.Key) iter.Seq[base.ScopeID]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	endReachedLocked(x, scopes)
	for at := from; at > before; at-- {
		if x.mu.rows.At(at).Scopes.SeenBy(scopes) {
			x.letGoLocked(at, scopes, may)
		}
	}
}

func (x *Indexer) letGoLocked(at int, scopes *ScopeSet, may func(kube.Key) iter.Seq[base.ScopeID]) {
	r := x.mu.rows.At(at)
	rest := r.Scopes.without(scopes)
	if !rest.Empty() {
		r = x.mu.rows.Edit(at)
		r.Scopes, r.own = x.mu.sets.intern(rest), x.mu.sets.intern(r.own.without(scopes))
		return
	}
	key, was := r.Key, r.state()
	for id := range may(key) {
		if int(id) < len(x.mu.reached) && x.mu.reached[id] < was.version {
			x.mu.floors.set(key, max(was.version, x.mu.floors.get(key)))
			break
		}
	}
	x.removeLocked(key)
	x.mu.awaited.drop(key)
	x.mu.ahead.drop(key)
	x.wakeLocked(key, was, entryState{})
}

// forget drops the sets that contain one of scopes, whose numbers can then be reused.
func (t *scopeSets) forget(scopes *ScopeSet) {
	for id := range scopes.All() {
		if int(id) < len(t.single) {
			t.single[id] = nil
		}
	}
	for key, s := range t.more {
		if s.SeenBy(scopes) {
			delete(t.more, key)
		}
	}
}

// SeenDifferently yields what appears and disappears when a filter changes from
// was to is, at the time of the call. A handler that joins has seen nothing:
// its was is ScopesOf().
func (x *Indexer) SeenDifferently(was, is *ScopeSet) iter.Seq[Change] {
	x.mu.RLock()
	rows, bad := x.mu.rows.View(), maps.Clone(x.mu.quarantine)
	x.mu.RUnlock()
	return func(yield func(Change) bool) {
		for r := range rows.All() {
			before, after := r.Scopes.SeenBy(was), r.Scopes.SeenBy(is)
			if before == after {
				continue
			}
			c := Change{Key: r.Key, Slot: r.slot, New: r.Object, NewUID: r.UID}
			if before {
				c.Old, c.OldUID, c.Before, c.LeftScope, c.Bytes = r.Object, r.UID, r.shown(), true, r.bytes
			} else {
				c.After = r.shown()
			}
			switch u := bad[r.Key]; {
			case !r.Undecodable:
			case before:
				c.Trouble = &Trouble{Before: r.Scopes, Was: u}
			default:
				c.Trouble = &Trouble{After: r.Scopes, Is: u}
			}
			if !yield(c) {
				return
			}
		}
	}
}

// UnchangedIn yields what scope shows as unchanged, except the keys in given.
func (x *Indexer) UnchangedIn(scope base.ScopeID, given map[kube.Key]bool) iter.Seq[Change] {
	x.mu.RLock()
	rows, bad := x.mu.rows.View(), maps.Clone(x.mu.quarantine)
	x.mu.RUnlock()
	return func(yield func(Change) bool) {
		for r := range rows.All() {
			if !r.shown().Has(scope) || given[r.Key] {
				continue
			}
			c := Change{
				Key: r.Key, Slot: r.slot, Resync: true, Relisted: true,
				Old: r.Object, OldUID: r.UID, Before: r.shown(), New: r.Object, NewUID: r.UID, After: r.shown(),
			}
			if u := bad[r.Key]; u != nil {
				c.Trouble = &Trouble{Before: r.Scopes, After: r.Scopes, Was: u, Is: u}
			}
			if !yield(c) {
				return
			}
		}
	}
}
