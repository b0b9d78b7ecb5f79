// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"maps"
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// ahead is an own write that was stored, and the scopes it was judged to be in.
type ahead struct {
	version Version
	in      *scopeSet
}

func (x *Indexer[T]) reachLocked(scope ScopeID, v Version) {
	for int(scope) >= len(x.mu.reached) {
		x.mu.reached = append(x.mu.reached, 0)
	}
	x.mu.reached[scope] = max(x.mu.reached[scope], v)
}

// unlistedLocked are the own writes that a list should have had, and has not:
// they were observed after the list had been compared with what was known.
func (x *Indexer[T]) unlistedLocked(list Reached, deltas []Delta[T], reached []Version) iter.Seq[step[T]] {
	before := world{reached: reached}.of(list.Scope)
	gone := make(map[Key]step[T])
	for key, a := range x.mu.ahead.values {
		at, ok := x.mu.at[key]
		if !ok {
			continue
		}
		r := x.mu.rows.At(int(at))
		if a.value.in.has(list.Scope) && a.value.version > before && a.value.version <= list.List && r.scopes.has(list.Scope) {
			gone[key] = step[T]{
				news: news{kind: ended, scope: list.Scope, uid: r.uid, version: list.List, missing: true},
				key:  key, object: r.object,
			}
		}
	}
	for i := range deltas {
		if d := &deltas[i]; d.Type == Replaced && d.Scope == list.Scope && d.UID == gone[d.Key].uid {
			delete(gone, d.Key)
		}
	}
	return maps.Values(gone)
}

// epochLocked forgets the versions of what scope holds: they mean nothing any
// more, so that the order of arrival decides.
func (x *Indexer[T]) epochLocked(scope ScopeID) {
	for i := range x.mu.rows.Len() {
		if x.mu.rows.At(i).scopes.has(scope) {
			r := x.mu.rows.Edit(i)
			r.version, r.own = 0, nil
		}
	}
	if int(scope) < len(x.mu.reached) {
		x.mu.reached[scope] = 0
	}
	x.mu.tombs = ageing[types.UID, tombstone]{limit: tombstoneLimit, forgotten: x.mu.tombs.forgotten}
	x.mu.floors = ageing[Key, Version]{limit: tombstoneLimit, forgotten: x.mu.floors.forgotten}
	x.mu.awaited = ageing[Key, Version]{limit: awaitLimit}
	x.mu.ahead = ageing[Key, ahead]{limit: math.MaxInt}
	for key := range x.mu.waiters {
		x.wakeLocked(key, holding{}, holding{})
	}
}

// begin notes that scope has begun a list, which may still speak of what is
// gone by the time it is applied.
func (x *Indexer[T]) begin(scope ScopeID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, 0)
}

// reached is the version that a scope has reached; 0: none yet.
func (x *Indexer[T]) reached(scope ScopeID) Version {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return world{reached: x.mu.reached}.of(scope)
}

// sweepLocked drops what was remembered for scopes that are past it now.
func (x *Indexer[T]) sweepLocked() {
	if x.mu.floors.len()+x.mu.awaited.len()+x.mu.ahead.len() == 0 {
		return
	}
	least := Version(math.MaxUint64)
	for _, r := range x.mu.reached {
		least = min(least, r)
	}
	for key, v, ok := x.mu.floors.oldest(); ok && v <= least; key, v, ok = x.mu.floors.oldest() {
		x.mu.floors.drop(key)
	}
	for key, v, ok := x.mu.awaited.oldest(); ok && v <= least; key, v, ok = x.mu.awaited.oldest() {
		x.mu.awaited.drop(key)
	}
	for key, a, ok := x.mu.ahead.oldest(); ok && a.version <= least; key, a, ok = x.mu.ahead.oldest() {
		x.mu.ahead.drop(key)
	}
}
