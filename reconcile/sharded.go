// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/source"
)

// bySharding is the source of a key whose shard is held from now on.
const bySharding = "shard"

// stay is the leave of a reconcile that needs no shard.
func stay() {}

// sharded passes the keys of the shards that the process holds. The zero sharded passes all keys.
// Safe for concurrent use once it is set.
type sharded[K comparable] struct {
	keys *shards.Keys[K] // nil: the process works on all keys
	stop func()

	repeatable bool                    // a simulation repeats what happens
	dropped    func(key K, later bool) // is called for keys that a worker drops; later: the shard is held soon

	foreign atomic.Uint64 // keys that were dropped
}

// set sets what the process holds. chosen is Options.ShardBy, uid returns the UID of the object of a
// key; nil: not known.
func (s *sharded[K]) set(held contextvalues.Shards, singleton bool, chosen func(K) (string, bool), uid func(K) (string, bool)) error {
	by, count := held.By()
	value := chosen // whose hash is the shard
	switch {
	case singleton:
		s.keys = shards.NewKeys(held, func(K) (int, bool) { return 0, true })
		return nil
	case chosen != nil:
	case by == shards.UID && uid != nil:
		value = uid
	case by == shards.Namespace:
		if _, is := any(*new(K)).(Key); !is {
			return fmt.Errorf("which shard a key of type %T belongs to is not known; set Options.ShardBy, or Options.Singleton if one replica is to reconcile all", *new(K))
		}
		value = func(key K) (string, bool) { return any(key).(Key).Namespace, true }
	default:
		return errors.New("which shard a key belongs to is not known, since the manager divides objects by UID and the controller is not made by reconcile.For; " +
			"set Options.ShardBy, or Options.Singleton if one replica is to reconcile all")
	}
	s.keys = shards.NewKeys(held, func(key K) (int, bool) {
		of, ok := value(key)
		return shards.Of(of, count), ok
	})
	return nil
}

// enter begins a reconcile of key. A nil leave: this process must not reconcile it now. panicked is
// that of Options.ShardBy: then the reconcile, which has no shard, fails by it.
func (s *sharded[K]) enter(ctx context.Context, key K) (in context.Context, leave func(), panicked *PanicError) {
	if s.keys == nil {
		return ctx, stay, nil
	}
	later := false
	if panicked = guarded(func() { in, leave, later = s.keys.Enter(ctx, key) }); panicked != nil {
		return ctx, stay, panicked
	}
	if leave != nil {
		return in, leave, nil
	}
	if !later {
		s.foreign.Add(1)
	}
	s.dropped(key, later)
	return nil, nil, nil
}

// follow gives keys to add when their shards are held.
func (s *sharded[K]) follow(add func(K, source.Cause)) {
	s.stop = s.keys.Follow(func(keys []K) {
		if s.repeatable {
			slices.SortFunc(keys, func(a, b K) int { return strings.Compare(keyText(a), keyText(b)) })
		}
		for _, key := range keys {
			add(key, source.Cause{Source: bySharding})
		}
	})
}

// end ends follow.
func (s *sharded[K]) end() {
	if s.stop != nil {
		s.stop()
	}
}
