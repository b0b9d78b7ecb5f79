// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Held says which shards this process works on.
type Held interface {
	// Enter begins a reconcile of a key of a shard, if that is held. Its context ends when the
	// shard is lost, and carries it. leave must be called when the reconcile has ended. A nil
	// leave: the shard is not held; later tells whether it is about to be.
	Enter(ctx context.Context, shard int) (in context.Context, leave func(), later bool)
	// Works reports whether the shard is held, and not drained.
	Works(shard int) bool
	// Changed calls f whenever a shard is held from now on, drained or lost, or is not about to be
	// held any more, until stop. f does not block, and may be called from any goroutine.
	Changed(f func()) (stop func())
}

// Keys passes the keys of a queue whose shards are held, and keeps the others until theirs are. It
// is not always the informers that bring the keys of a shard: they may have all objects on each
// replica.
//
//	queue ──▶ Enter ──▶ reconcile
//	            │
//	            └─ its shard is not held ──▶ kept ── held ──▶ Follow: added to the queue
//
// place returns the shard of a key; not ok: the key is of no object that this process has. It is
// called by Enter alone, without a lock, and its panic is Enter's. Make Keys with NewKeys. The
// methods are safe for concurrent use and do not block.
type Keys[K comparable] struct {
	held  Held
	place func(key K) (shard int, ok bool)
	mu    struct {
		sync.Mutex
		kept map[int]map[K]struct{} // by shard
		add  func(keys []K)         // nil: nobody follows
	}
}

// NewKeys returns Keys that keep none.
func NewKeys[K comparable](held Held, place func(key K) (shard int, ok bool)) *Keys[K] {
	k := &Keys[K]{held: held, place: place}
	k.mu.kept = map[int]map[K]struct{}{}
	return k
}

// Enter begins the reconcile of key, as Held.Enter. A nil leave: this process must not reconcile it
// now.
func (k *Keys[K]) Enter(ctx context.Context, key K) (in context.Context, leave func(), later bool) {
	shard, ok := k.place(key)
	if !ok {
		k.release(key) // its object is gone
		return nil, nil, false
	}
	for {
		if in, leave, later = k.held.Enter(ctx, shard); leave != nil {
			return in, leave, false
		}
		k.keep(key, shard)
		if !k.held.Works(shard) || !k.release(key) {
			return nil, nil, later // it is added when the shard is held, or has been
		}
	}
}

// Follow makes add be called with the keys that were kept, when their shards are held, until stop.
// add must not block.
func (k *Keys[K]) Follow(add func(keys []K)) (stop func()) {
	k.mu.Lock()
	k.mu.add = add
	k.mu.Unlock()
	unheard := k.held.Changed(func() {
		if keys := k.take(); len(keys) > 0 {
			add(keys)
		}
	})
	return func() {
		unheard()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.mu.add = nil
	}
}

// Add calls what Follow was given, if there are keys.
func (k *Keys[K]) Add(keys ...K) {
	k.mu.Lock()
	add := k.mu.add
	k.mu.Unlock()
	if add != nil && len(keys) > 0 {
		add(keys)
	}
}

// take returns the keys that were kept for shards that are held now, and keeps them no more. There
// are none if nobody follows: what Changed was given may be called after its stop.
func (k *Keys[K]) take() (taken []K) {
	k.mu.Lock()
	var some []int
	if k.mu.add != nil {
		some = slices.Sorted(maps.Keys(k.mu.kept))
	}
	k.mu.Unlock()
	for _, shard := range some {
		if !k.held.Works(shard) {
			continue
		}
		k.mu.Lock()
		for key := range k.mu.kept[shard] {
			taken = append(taken, key)
		}
		delete(k.mu.kept, shard)
		k.mu.Unlock()
	}
	return taken
}

func (k *Keys[K]) keep(key K, shard int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.kept[shard] == nil {
		k.mu.kept[shard] = map[K]struct{}{}
	}
	k.mu.kept[shard][key] = struct{}{}
}

// release ends keep, of whichever shards. It reports whether the key was kept.
func (k *Keys[K]) release(key K) (was bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for shard, kept := range k.mu.kept {
		_, is := kept[key]
		was = was || is
		if delete(kept, key); len(kept) == 0 {
			delete(k.mu.kept, shard)
		}
	}
	return was
}
