// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

func without(plan, other kit.Plan) (out kit.Plan) {
	texts := map[string]int{}
	for _, op := range other {
		texts[op.String()+op.When.String()]++
	}
	for _, op := range plan {
		if text := op.String() + op.When.String(); texts[text] > 0 {
			texts[text]--
		} else {
			out = append(out, op)
		}
	}
	return out
}

// A variation has one operation more, less or at another moment than its seed; the user
// does the same, and its number alone repeats it.
func TestKit_VariationChangesOneOperation_K13(t *testing.T) {
	more, less, moved := 0, 0, 0
	for seed := uint64(1); seed < 6; seed++ {
		base := kit.Run(t, kit.Config{}, seed, changes)
		sound(t, base)
		for nth := uint64(1); nth < 7; nth++ {
			h := kit.Run(t, kit.Config{}, nth<<56|seed, changes)
			sound(t, h)
			if how, _ := h.Differs(kit.Run(t, kit.Config{}, h.Seed, changes)); how != "" {
				t.Errorf("seed %#x has two histories: %s", h.Seed, how)
			}
			switch came, went := len(without(h.Plan, base.Plan)), len(without(base.Plan, h.Plan)); {
			case came == 1 && went == 0:
				more++
			case came == 0 && went == 1:
				less++
			case came == 1 && went == 1:
				moved++
			case came > 1 || went > 1:
				t.Errorf("seed %#x: the plan is %v, that of seed %#x is %v", h.Seed, h.Plan, seed, base.Plan)
			}
			if asked, before := userWrites(h), userWrites(base); !slices.Equal(asked, before) {
				t.Errorf("seed %#x: the user writes %v, with seed %#x %v", h.Seed, asked, seed, before)
			}
		}
	}
	if more == 0 || less == 0 || moved == 0 {
		t.Errorf("of 30 variations %d have an operation more, %d one less and %d one at another moment; want some of each", more, less, moved)
	}
}

func userWrites(h *kit.History) (out []string) {
	for _, e := range h.Events {
		if e.What == kit.Changed && e.Who == "user" {
			out = append(out, e.Name+" "+e.Key)
		}
	}
	return out
}

// Find runs what Test runs until a run matches, and its seed repeats that run.
func TestKit_FindVaries_K13(t *testing.T) {
	runs := 0
	h, n := kit.Find(t, kit.Config{Vary: true}, 100, 30, changes, func(h *kit.History) bool {
		runs++
		return h.Seed > 1<<56
	})
	if h == nil || n != runs || n < 9 {
		t.Fatalf("it took %d runs of %d to find %v, want a variation after the eighth", n, runs, h)
	}
	if how, _ := h.Differs(kit.Run(t, kit.Config{}, h.Seed, changes)); how != "" {
		t.Errorf("seed %#x alone has another history: %s", h.Seed, how)
	}
	if h, n := kit.Find(t, kit.Config{Faults: kit.Plan{}}, 1, 3, changes, func(*kit.History) bool { return false }); h != nil || n != 3 {
		t.Errorf("Find returns %v after %d runs, want nothing after 3", h, n)
	}
}
