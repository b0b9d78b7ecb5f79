// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"errors"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/reconcile"
)

// A write of a reconcile passes while its shard is held or drained, and not when it was lost since, even if
// the process holds the shard again.
func TestGuard_WritesOfALostShardAreRefused_M31(t *testing.T) {
	gate := writegate.New(time.Hour)
	g := newGuard(shards.UID, 2, gate)
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
