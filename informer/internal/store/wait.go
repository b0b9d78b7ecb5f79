// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// awaitLimit is how many keys with an invisible own write are remembered; the
// oldest goes first.
const awaitLimit = 1000

type waiter struct {
	than kube.Version
	do   func()
}

// WhenPassed calls do once: when the version of key is above than, or the key
// is gone; at once if that is already so. Where versions are unknown, any
// change counts. stop cancels it.
func (x *Indexer) WhenPassed(key kube.Key, than kube.Version, do func()) (stop func()) {
	w := &waiter{than: than, do: do}
	if x.enlist(key, w) {
		do()
		return func() {}
	}
	return func() { x.dismiss(key, w) }
}

// enlist registers w, or reports that there is nothing to wait for.
func (x *Indexer) enlist(key kube.Key, w *waiter) (passed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.mu.at[key]
	if !ok || x.mu.rows.At(int(at)).Version > w.than {
		return true
	}
	x.mu.waiters[key] = append(x.mu.waiters[key], w)
	return false
}

func (x *Indexer) dismiss(key kube.Key, w *waiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keepLocked(key, func(other *waiter) bool { return other != w })
}

func (x *Indexer) keepLocked(key kube.Key, keep func(*waiter) bool) {
	rest := slices.DeleteFunc(x.mu.waiters[key], func(w *waiter) bool { return !keep(w) })
	if len(rest) == 0 {
		delete(x.mu.waiters, key)
		return
	}
	x.mu.waiters[key] = rest
}

// wakeLocked collects the waiters that a change of key satisfies.
func (x *Indexer) wakeLocked(key kube.Key, was, is entryState) {
	if len(x.mu.waiters) == 0 || len(x.mu.waiters[key]) == 0 {
		return
	}
	x.keepLocked(key, func(w *waiter) bool {
		if is.scopes.Empty() || is.version > w.than || is.version == 0 && is != was {
			x.mu.passed = append(x.mu.passed, w.do)
			return false
		}
		return true
	})
}

// Passed returns the functions of the waiters that the last changes satisfied.
// The caller of Apply or Observe calls them without any lock.
func (x *Indexer) Passed() []func() {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.mu.passed
	x.mu.passed = nil
	return out
}

// Snapshot returns what the Indexer holds.
func (x *Indexer) Snapshot() state.Informer {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return state.Informer{
		Kind:        x.Kind,
		Objects:     x.mu.rows.Len(),
		Bytes:       x.mu.bytes,
		Heap:        x.Heap.Load(),
		Packed:      x.mu.packed,
		Undecodable: len(x.mu.quarantine),
		Tombstones:  x.mu.tombs.len() + x.mu.floors.len(),
		Forgotten:   x.mu.tombs.forgotten + x.mu.floors.forgotten,
		IndexPanics: x.mu.panics,
		Awaiting:    x.mu.awaited.len(),
		NotOverlaid: x.mu.refused,
	}
}
