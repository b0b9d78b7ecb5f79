// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/reconcile"
)

// held are the shards of a process, of two.
type held struct {
	mu     sync.Mutex
	state  [2]string // held, later or empty
	inside int
	tell   func()
}

func (h *held) By() (shards.By, int) { return shards.UID, 2 }

func (h *held) Enter(ctx context.Context, shard int) (context.Context, func(), bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state[shard] != "held" {
		return nil, nil, h.state[shard] == "later"
	}
	h.inside++
	return contextvalues.WithShard(ctx, h, contextvalues.Shard{Number: shard}), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.inside--
	}, false
}

func (h *held) Works(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state[shard] == "held"
}

func (h *held) Changed(f func()) (stop func()) {
	h.tell = f
	return func() {}
}

func (h *held) set(shard int, state string) {
	h.mu.Lock()
	h.state[shard] = state
	h.mu.Unlock()
	h.tell()
}

// keysIn returns two keys of each shard.
func keysIn() (first, second []string) {
	for i := 0; len(first) < 2 || len(second) < 2; i++ {
		key := fmt.Sprint(i * 7919)
		if shards.Of(key, 2) == 0 && len(first) < 2 {
			first = append(first, key)
		} else if shards.Of(key, 2) == 1 && len(second) < 2 {
			second = append(second, key)
		}
	}
	return first, second
}

// A key is reconciled where its shard is held. One whose shard is about to be held waits until it is, and
// runs once then, for all that woke it. Others are dropped.
func TestController_ReconcilesKeysOfHeldShards_R32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		first, second := keysIn()
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{ShardBy: func(key string) (string, bool) { return key, key != "x" }})
		h := &held{state: [2]string{"held", "later"}}
		ctx := contextvalues.WithInstruments(t.Context(), contextvalues.Instruments{Shards: h})
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer running.Wait()
		defer cancel()
		for _, key := range []string{first[0], second[0], second[0], "x", second[1]} {
			fed <- key
			synctest.Wait()
		}
		if got := j.notes(); got != first[0] {
			t.Errorf("reconciled %q, want %s alone: the shard of the others is not held yet, and x is of none", got, first[0])
		}
		if s := c.Snapshot(); s.Foreign != 1 || s.Queue.Ready+s.Queue.Held != 0 {
			t.Errorf("%d keys were dropped, want x, and the queue has %d", s.Foreign, s.Queue.Ready+s.Queue.Held)
		}
		h.set(1, "held")
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 3 {
			t.Errorf("reconciled %q, want %v once each when their shard is held", got, second)
		}
		h.set(0, "")
		fed <- first[1]
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 3 || c.Snapshot().Foreign != 2 {
			t.Errorf("reconciled %q, want nothing of a shard that was lost", got)
		}
		h.set(0, "held")
		synctest.Wait()
		if got := strings.Fields(j.notes()); len(got) != 4 || got[3] != first[1] {
			t.Errorf("reconciled %q, want %s too: its shard is held again", got, first[1])
		}
		if h.inside != 0 {
			t.Errorf("%d reconciles have not left their shard", h.inside)
		}
	})
}

// Which shard a key belongs to must be known.
func TestController_KeyOfNoKnownShardIsMisuse_R32(t *testing.T) {
	ctx := contextvalues.WithInstruments(t.Context(), contextvalues.Instruments{Shards: &held{}})
	f := func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }
	err := reconcile.New("test", f, reconcile.KeyedOptions[string]{}).Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "set Options.ShardBy, or Options.Singleton") {
		t.Errorf("Run = %v, want that Options.ShardBy is missing", err)
	}
}

// A Singleton's keys are of shard 0. A reconcile that has lost its shard is no failure.
func TestController_SingletonAndLostShard_R32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed, ran := make(keys, 10), make(chan int, 10)
		h := &held{state: [2]string{"held", "held"}}
		c := reconcile.New("test", func(ctx context.Context, _ string) (reconcile.Result, error) {
			shard, _ := contextvalues.ShardOf(ctx, h)
			ran <- shard.Number
			return reconcile.Result{}, errors.Join(reconcile.ErrNotLeading)
		}, reconcile.KeyedOptions[string]{Singleton: true})
		c.Watch(fed.source())
		ctx, cancel := context.WithCancel(contextvalues.WithInstruments(t.Context(), contextvalues.Instruments{Shards: h}))
		var running sync.WaitGroup
		running.Go(func() { _ = c.Run(ctx) })
		defer running.Wait()
		defer cancel()
		_, second := keysIn()
		fed <- second[0]
		synctest.Wait()
		if shard := <-ran; shard != 0 {
			t.Errorf("the key of a Singleton ran in shard %d, want 0", shard)
		}
		if s := c.Snapshot(); s.Outcomes[reconcile.OutcomeStopped] == 0 || s.Outcomes[reconcile.OutcomeError] != 0 {
			t.Errorf("the outcomes are %v, want stopped", s.Outcomes)
		}
	})
}

// A panic of ShardBy is one of the reconcile: it is counted, the key is retried, and other keys
// run. What waits for a shard does not ask again.
func TestController_APanicOfShardByIsTheReconciles_R32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		first, second := keysIn()
		var broken atomic.Bool
		broken.Store(true)
		c, fed := noting(t, &j, reconcile.KeyedOptions[string]{ShardBy: func(key string) (string, bool) {
			if broken.Load() && key == first[0] {
				panic("a test says so")
			}
			return key, true
		}})
		h := &held{state: [2]string{"held", "later"}}
		ctx, cancel := context.WithCancel(contextvalues.WithInstruments(t.Context(), contextvalues.Instruments{Shards: h}))
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer running.Wait()
		defer cancel()
		for _, key := range []string{first[0], second[0], first[1]} {
			fed <- key
			synctest.Wait()
		}
		if got, s := j.notes(), c.Snapshot(); got != first[1] || s.Outcomes[reconcile.OutcomePanic] == 0 || s.Failing != 1 {
			t.Errorf("reconciled %q, and the outcomes are %v; want %s, and a panic", got, s.Outcomes, first[1])
		}
		h.set(1, "held")
		synctest.Wait()
		broken.Store(false)
		time.Sleep(time.Minute)
		if got, s := j.notes(), c.Snapshot(); len(strings.Fields(got)) != 3 || s.Failing != 0 {
			t.Errorf("reconciled %q, and %d keys fail; want %s too, by a retry", got, s.Failing, first[0])
		}
	})
}
