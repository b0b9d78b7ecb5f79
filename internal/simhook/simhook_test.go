// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// half is a simulation that always draws 0.5.
type half struct{ simhook.Hooks }

func (half) Random(string) float64 { return 0.5 }
func (half) Wall() time.Time       { return time.Unix(5, 0) }

func TestOf_IsNilInProduction(t *testing.T) {
	if h := simhook.Of(t.Context()); h != nil {
		t.Errorf("Of = %v in a context that no simulation made", h)
	}
}

func TestOf_IsWhatWithPutThere(t *testing.T) {
	ctx, cancel := context.WithCancel(simhook.With(t.Context(), half{}))
	defer cancel()
	if h := simhook.Of(ctx); h != (half{}) {
		t.Errorf("Of = %v, want the simulation's", h)
	}
}

func TestDuration_IsDrawnByTheSimulationOrByChance(t *testing.T) {
	if d := simhook.Duration(half{}, "a wait", time.Minute); d != 30*time.Second {
		t.Errorf("the simulation drew a half of a minute, and it became %v", d)
	}
	for range 100 {
		if d := simhook.Duration(nil, "a wait", time.Minute); d < 0 || d >= time.Minute {
			t.Fatalf("drew %v of a minute", d)
		}
	}
	if d := simhook.Duration(nil, "a wait", -time.Second); d != 0 {
		t.Errorf("drew %v of a negative time, want 0", d)
	}
}

func TestWall_IsTheSimulationsOrTheMachines(t *testing.T) {
	if at := simhook.Wall(half{}); at.Unix() != 5 {
		t.Errorf("Wall = %v, want the simulation's", at)
	}
	if at := simhook.Wall(nil); time.Since(at).Abs() > time.Hour || at != at.Round(0) {
		t.Errorf("Wall = %v, want now without a monotonic reading", at)
	}
}

func BenchmarkOf_Production(b *testing.B) {
	h := simhook.Of(b.Context())
	for b.Loop() {
		if h != nil {
			h.Step(b.Context(), "", "")
		}
	}
}
