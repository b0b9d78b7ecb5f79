// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"maps"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// ahead is a stored own write, and the scopes it was judged to be in.
type ahead struct {
	version kube.Version
	in      *ScopeSet
}

func (x *Indexer) reachLocked(scope base.ScopeID, v kube.Version) {
	for int(scope) >= len(x.mu.reached) {
		x.mu.reached = append(x.mu.reached, 0)
	}
	x.mu.reached[scope] = max(x.mu.reached[scope], v)
}

// unlistedLocked yields the own writes that a list should contain but does not:
// they were observed after the list was compared with the known state. What the list says nothing
// of stays.
func (x *Indexer) unlistedLocked(list Reached, deltas []Delta, reached []kube.Version) iter.Seq[step] {
	before := knowledge{reached: reached}.of(list.Scope)
	gone := make(map[kube.Key]step)
	for key, a := range x.mu.ahead.values {
		at, ok := x.mu.at[key]
		if !ok || list.keeps.has(key) {
			continue
		}
		r := x.mu.rows.At(int(at))
		if a.value.in.Has(list.Scope) && a.value.version > before && a.value.version <= list.List && r.Scopes.Has(list.Scope) {
			gone[key] = step{
				input: input{kind: ended, scope: list.Scope, uid: r.UID, version: list.List, missing: true},
				key:   key, object: r.Object,
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

// epochLocked drops the versions of what scope holds. They mean nothing in the
// new epoch, so the order of arrival decides.
func (x *Indexer) epochLocked(scope base.ScopeID) {
	for i := range x.mu.rows.Len() {
		if x.mu.rows.At(i).Scopes.Has(scope) {
			r := x.mu.rows.Edit(i)
			r.Version, r.own = 0, nil
		}
	}
	if int(scope) < len(x.mu.reached) {
		x.mu.reached[scope] = 0
	}
	x.mu.tombs = ageing[types.UID, tombstone]{limit: tombstoneLimit, forgotten: x.mu.tombs.forgotten}
	x.mu.floors = ageing[kube.Key, kube.Version]{limit: tombstoneLimit, forgotten: x.mu.floors.forgotten}
	x.mu.awaited = ageing[kube.Key, kube.Version]{limit: awaitLimit}
	x.mu.ahead = ageing[kube.Key, ahead]{limit: math.MaxInt}
	for key := range x.mu.waiters {
		x.wakeLocked(key, entryState{}, entryState{})
	}
}

// Begin records that scope has begun a list, which may still contain objects
// that are gone when it is applied.
func (x *Indexer) Begin(scope base.ScopeID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reachLocked(scope, 0)
}

// Reached returns the version that a scope has reached; 0: none yet.
func (x *Indexer) Reached(scope base.ScopeID) kube.Version {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return knowledge{reached: x.mu.reached}.of(scope)
}

// sweepLocked drops what was remembered for scopes that are past it.
func (x *Indexer) sweepLocked() {
	if x.mu.floors.len()+x.mu.tombs.len()+x.mu.awaited.len()+x.mu.ahead.len() == 0 {
		return
	}
	least := kube.Version(math.MaxUint64)
	for _, r := range x.mu.reached {
		least = min(least, r)
	}
	for key, v, ok := x.mu.floors.oldest(); ok && v <= least; key, v, ok = x.mu.floors.oldest() {
		x.mu.floors.drop(key)
	}
	for uid, t, ok := x.mu.tombs.oldest(); ok && t.last && !t.held && t.after <= least; uid, t, ok = x.mu.tombs.oldest() {
		x.mu.tombs.drop(uid) // of an object that no scope has
	}
	for key, v, ok := x.mu.awaited.oldest(); ok && v <= least; key, v, ok = x.mu.awaited.oldest() {
		x.mu.awaited.drop(key)
	}
	for key, a, ok := x.mu.ahead.oldest(); ok && a.version <= least; key, a, ok = x.mu.ahead.oldest() {
		x.mu.ahead.drop(key)
	}
}
