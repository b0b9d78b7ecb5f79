// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// somewhere is the result of a probe.
var somewhere = probed{
	moments: []moment{
		{write: "create ConfigMap", at: make([]time.Duration, 3), first: []int{0}, holds: make([]time.Duration, 3)},
		{write: "update Pod/status", at: make([]time.Duration, 9), first: []int{0}, holds: make([]time.Duration, 9)},
		{write: "update Pod", user: true, at: make([]time.Duration, 2), first: []int{0}, holds: make([]time.Duration, 2)},
	},
	watched: []string{"ConfigMap", "Pod"},
}

// Draws are independent, and removing an operation from the plan leaves the others
// unchanged.
func TestDraws_AreByWhatTheyAreFor_K2(t *testing.T) {
	alone, among := seededrand.NewDraws(7), seededrand.NewDraws(7)
	for range 5 {
		among.Next("another")
		if a, b := alone.Next("mine"), among.Next("mine"); a != b {
			t.Errorf("drew %d alone and %d beside others", a, b)
		}
	}
	whole := Swarm()
	for seed := range uint64(20) {
		all := whole.drawn(seed, somewhere)
		for i := range whole {
			less := append(append(Plan{}, whole[:i]...), whole[i+1:]...).drawn(seed, somewhere)
			want := Plan{}
			for _, op := range all {
				if op.Verb != whole[i].Verb || op.Code != whole[i].Code || op.Amount != whole[i].Amount {
					want = append(want, op)
				}
			}
			if !reflect.DeepEqual(less, want) {
				t.Fatalf("seed %d: without %s the plan is\n%v, want\n%v", seed, whole[i], less, want)
			}
		}
	}
}

// A seed without faults triggered by writes needs no probe: its plan is the same without
// one.
func TestPlan_ProbeIsLeftOutWhereNoWriteTriggersAFault_K2(t *testing.T) {
	whole, without := Swarm(), 0
	for seed := range uint64(300) {
		if whole.hasWriteTrigger(seed) {
			continue
		}
		without++
		if a, b := whole.drawn(seed, probed{}), whole.drawn(seed, somewhere); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: without a probe the plan is\n%v, with one\n%v", seed, a, b)
		}
	}
	if without < 1 || without > 150 {
		t.Errorf("%d of 300 seeds have no fault triggered by a write, want a few", without)
	}
}

type complaints struct{ texts []string }

func (c *complaints) Error(args ...any) { c.texts = append(c.texts, fmt.Sprint(args...)) }

func TestWorld_UsedAfterItsRunSaysSo_K6(t *testing.T) {
	var w *World
	h := Run(t, Config{Faults: Plan{}}, 1, func(world *World) {
		w = world
		w.Errorf("enough")
	})
	if len(h.Violations) != 1 {
		t.Fatalf("violations %v, want the one that was asked for", h.Violations)
	}
	reported := &complaints{}
	w.t = reported
	obj := &metav1.PartialObjectMetadata{}
	w.Run(nil)
	w.Create(obj)
	w.Delete(obj)
	w.Sleep(time.Second)
	w.Settled(nil)
	w.Eventually(nil)
	if len(reported.texts) != 6 {
		t.Errorf("reported %q, want six times that the run is over", reported.texts)
	}
}
