// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/reconcile"
)

// A write of a reconcile passes while its shard is held or drained, and not when it was lost since, even if
// the process holds the shard again.
func TestGuard_WritesOfALostShardAreRefused_M31(t *testing.T) {
	gate := writegate.New(time.Hour)
	g := newGuard(shards.UID, 2, gate, 15*time.Second)
	gate.Open(gate.Now())
	if _, leave, later := g.Enter(t.Context(), 1); leave != nil || later {
		t.Error("a reconcile of a shard that is not held begins")
	}
	g.expect([]int{1})
	if _, leave, later := g.Enter(t.Context(), 1); leave != nil || !later {
		t.Error("a shard that is expected is not later")
	}
	g.hold([]int{1})
	ctx, leave, _ := g.Enter(t.Context(), 1)
	if leave == nil || g.allows(ctx) != nil {
		t.Fatalf("a write of a held shard: %v", g.allows(ctx))
	}
	drained := g.drain(1)
	if _, other, _ := g.Enter(t.Context(), 1); other != nil {
		t.Error("a reconcile of a shard that is drained begins")
	}
	if err := g.allows(ctx); err != nil {
		t.Errorf("a write while the shard is drained: %v", err)
	}
	select {
	case <-drained:
		t.Error("the shard is drained before its reconcile has ended")
	default:
	}
	g.lose([]int{1}, "a test says so")
	for _, when := range []string{"when the shard is lost", "when it is held again"} {
		if err := g.allows(ctx); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("a write %s: %v, want that it is refused", when, err)
		}
		g.hold([]int{1})
	}
	if ctx.Err() == nil {
		t.Error("the context of a reconcile whose shard was lost has not ended")
	}
	if g.idle() {
		t.Error("no reconcile is in flight, though one has not left")
	}
	leave()
	<-drained
	if !g.idle() {
		t.Error("a reconcile is in flight, though it has left")
	}
	if err := g.allows(t.Context()); err != nil {
		t.Errorf("a write of no reconcile: %v", err)
	}
}

// hanging is a transport that answers when the context of a request ends: then nobody knows what the
// server does.
type hanging struct{}

func (hanging) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// A write that was cut off may arrive for a lease duration, also when its shard was lost meanwhile.
func TestGuard_KnowsUntilWhenAWriteMayArrive_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := writegate.New(time.Hour)
		g := newGuard(shards.UID, 3, gate, 15*time.Second)
		gate.Open(gate.Now())
		g.hold([]int{1, 2})
		begin := time.Now()
		for _, shard := range []int{1, 2} {
			in, leave, _ := g.Enter(t.Context(), shard)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(in), 2*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://server/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer cancel()
				_, _ = g.Wrap(hanging{}).RoundTrip(req)
			}()
			synctest.Wait()
			leave()
		}
		g.lose([]int{2}, "a test says so")
		g.hold([]int{2})
		for _, c := range []struct{ after, shard0, shard1, shard2, lost time.Duration }{
			{time.Second, 0, 15 * time.Second, 15 * time.Second, 15 * time.Second}, // in flight
			{3 * time.Second, 0, 14 * time.Second, 14 * time.Second, 14 * time.Second},
			{17 * time.Second, 0, 0, 0, 0},
		} {
			time.Sleep(time.Until(begin.Add(c.after)))
			now := time.Now()
			of, lost := g.arriving(now)
			for i, want := range []time.Duration{c.shard0, c.shard1, c.shard2, c.lost} {
				if got := max(append(of, lost)[i].Sub(now), 0); got != want {
					t.Errorf("after %s, writes of %d (the last: of what was lost) may arrive for %s, want %s", c.after, i, got, want)
				}
			}
		}
	})
}

// Two managers in one process: a write of a client of the one in a reconcile of the other needs no
// shard of the one, whatever its number. A reconcile of the one that runs in work of the other has
// a shard of each.
func TestGuard_ShardsOfOthersAreNotItsOwn_M31(t *testing.T) {
	var both [2]*Guard
	for i, count := range []int{4, 1} {
		gate := writegate.New(time.Hour)
		both[i] = newGuard(shards.UID, count, gate, 15*time.Second)
		gate.Open(gate.Now())
	}
	one, other := both[0], both[1]
	one.hold([]int{3})
	other.hold([]int{0})
	ctx, leave, _ := one.Enter(t.Context(), 3)
	defer leave()
	for range 2 {
		if err := other.allows(ctx); err != nil {
			t.Errorf("a write of another manager's reconcile is refused: %v", err)
		}
		other.lose([]int{0}, "a test says so")
	}
	other.hold([]int{0})
	ctx, leave, _ = other.Enter(ctx, 0)
	defer leave()
	if err := errors.Join(one.allows(ctx), other.allows(ctx)); err != nil {
		t.Errorf("a write of a reconcile that has a shard of both managers: %v", err)
	}
	one.lose([]int{3}, "a test says so")
	if err := one.allows(ctx); !errors.Is(err, reconcile.ErrNotLeading) || other.allows(ctx) != nil {
		t.Errorf("the one has lost its shard and says %v, the other %v", err, other.allows(ctx))
	}
}
