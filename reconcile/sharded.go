// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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
	held  contextvalues.Shards                // nil: the process works on all keys
	place func(key K) (value string, ok bool) // whose hash is the shard; nil: shard 0
	count int
	stop  func()

	repeatable bool                    // a simulation repeats what happens
	dropped    func(key K, later bool) // is called for keys that a worker drops; later: the shard is held soon

	foreign atomic.Uint64 // keys that were dropped
	mu      struct {
		sync.Mutex
		// later are keys that were taken while their shards were not held. When one is, it is not always
		// the informers that bring its keys: they may have all objects on each replica.
		later map[K]struct{}
	}
}

// set sets what the process holds. chosen is Options.ShardBy, uid returns the UID of the object of a
// key; nil: not known.
func (s *sharded[K]) set(held contextvalues.Shards, singleton bool, chosen func(K) (string, bool), uid func(K) (string, bool)) error {
	by, count := held.By()
	s.held, s.count = held, count
	switch {
	case singleton:
		return nil
	case chosen != nil:
		s.place = chosen
	case by == shards.UID && uid != nil:
		s.place = uid
	case by == shards.Namespace:
		if _, is := any(*new(K)).(Key); !is {
			return fmt.Errorf("which shard a key of type %T belongs to is not known; set Options.ShardBy, or Options.Singleton if one replica is to reconcile all", *new(K))
		}
		s.place = func(key K) (string, bool) { return any(key).(Key).Namespace, true }
	default:
		return errors.New("which shard a key belongs to is not known, since the manager divides objects by UID and the controller is not made by reconcile.For; " +
			"set Options.ShardBy, or Options.Singleton if one replica is to reconcile all")
	}
	return nil
}

// enter begins a reconcile of key. A nil leave: this process must not reconcile it now.
func (s *sharded[K]) enter(ctx context.Context, key K) (in context.Context, leave func()) {
	if s.held == nil {
		return ctx, stay
	}
	later := false
	shard, ok := s.shardOf(key)
	if ok {
		if in, leave, later = s.held.Enter(ctx, shard); leave != nil {
			return in, leave
		}
		s.keep(key)
		if s.held.Works(shard) { // since then; what is given keys may not have seen this one
			if in, leave, _ = s.held.Enter(ctx, shard); leave != nil {
				s.release(key)
				return in, leave
			}
		}
	}
	if !later {
		s.foreign.Add(1)
	}
	s.dropped(key, later)
	return nil, nil
}

// shardOf returns the shard of a key. Not ok: the key is of no object that this process has.
func (s *sharded[K]) shardOf(key K) (shard int, ok bool) {
	if s.place == nil {
		return 0, true
	}
	value, ok := s.place(key)
	return shards.Of(value, s.count), ok
}

func (s *sharded[K]) keep(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.later == nil {
		s.mu.later = map[K]struct{}{}
	}
	s.mu.later[key] = struct{}{}
}

func (s *sharded[K]) release(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.later, key)
}

// follow gives keys to add when their shards are held.
func (s *sharded[K]) follow(add func(K, source.Cause)) {
	s.stop = s.held.Changed(func() {
		for _, key := range s.takeHeld() {
			add(key, source.Cause{Source: bySharding})
		}
	})
}

// takeHeld returns the keys of later whose shards are held, and forgets them, and those of objects that
// this process does not have any more.
func (s *sharded[K]) takeHeld() (taken []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.mu.later, func(key K, _ struct{}) bool {
		shard, ok := s.shardOf(key)
		if ok && !s.held.Works(shard) {
			return false
		}
		if ok {
			taken = append(taken, key)
		}
		return true
	})
	if s.repeatable {
		slices.SortFunc(taken, func(a, b K) int { return strings.Compare(keyText(a), keyText(b)) })
	}
	return taken
}

// end ends follow.
func (s *sharded[K]) end() {
	if s.stop != nil {
		s.stop()
	}
}
