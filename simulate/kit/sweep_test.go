// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// shown returns a history in which a seed shows the outcome.
func shown(seed uint64, outcome string) *History {
	return &History{Seed: seed, Events: []Event{{What: Ended, Who: "manager-1", Kind: "c", Name: outcome}}}
}

// sweepBy runs a sweep of 90 places with a number of workers, and returns the seeds of
// its places. Each seed but the variations shows something that depends on it.
func sweepBy(t *testing.T, workers int, outcome func(uint64) string) map[int]uint64 {
	t.Helper()
	s := newSweep(1, 90, true)
	var mu sync.Mutex
	order := map[int]uint64{}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for place, seed := range s.seeds {
				mu.Lock()
				order[place] = seed
				mu.Unlock()
				s.ended(place, shown(seed, outcome(seed)))
			}
		})
	}
	group.Wait()
	if len(order) != 90 {
		t.Errorf("%d places have run, want 90", len(order))
	}
	return order
}

// sweepBehind is sweepBy with runs that end in batches, the last one first.
func sweepBehind(pending int, outcome func(uint64) string) map[int]uint64 {
	s := newSweep(1, 90, true)
	order := map[int]uint64{}
	var under []int
	for {
		place, seed, ok := s.take()
		if ok {
			order[place] = seed
			under = append(under, place)
		}
		if !ok || len(under) == pending {
			for _, place := range slices.Backward(under) {
				s.ended(place, shown(order[place], outcome(order[place])))
			}
			under = nil
		}
		if !ok {
			return order
		}
	}
}

// The variations of a sweep depend only on histories, however many run at the same
// time, and no run is repeated.
func TestSweep_FollowsFromHistoriesAlone_K13(t *testing.T) {
	outcome := func(seed uint64) string { return fmt.Sprint(seededrand.Drawn(seed, "outcome", 0) % 40) }
	want := sweepBy(t, 1, outcome)
	for n := 2; n < 8; n++ {
		if got := sweepBy(t, n, outcome); !maps.Equal(got, want) {
			t.Fatalf("%d workers run %x, one runs %x", n, got, want)
		}
		if got := sweepBehind(n, outcome); !maps.Equal(got, want) {
			t.Fatalf("%d runs that end together are %x, one after the other %x", n, got, want)
		}
	}
	seeds := slices.Sorted(maps.Values(want))
	if len(slices.Compact(seeds)) != len(want) {
		t.Errorf("a seed comes twice: %x", seeds)
	}
	variations := slices.DeleteFunc(seeds, func(seed uint64) bool { _, nth := ofVariation(seed); return nth == 0 })
	if len(variations) != 28 {
		t.Errorf("%d of 90 places vary a seed, want 28: every third one from the ninth on", len(variations))
	}
}

// A seed that shows something new is varied next, and again as long as that shows more.
func TestSweep_VariesWhatShowsSomethingNew_K13(t *testing.T) {
	order := sweepBy(t, 1, func(seed uint64) string {
		if varied, nth := ofVariation(seed); varied == 5 {
			return fmt.Sprint("new ", nth)
		}
		return "done"
	})
	of := map[uint64]int{}
	for _, seed := range order {
		if varied, nth := ofVariation(seed); nth > 0 {
			of[varied]++
		}
	}
	if of[5] < 20 {
		t.Errorf("seed 5, whose every variation is news, is varied %d times of 28, others %v", of[5], of)
	}
}

// A sweep of a plan without random choices has only seeds.
func TestSweep_VariesNoPlanThatIsGiven(t *testing.T) {
	s := newSweep(11, 30, false)
	for place, seed := range s.seeds {
		if seed != uint64(11+place) {
			t.Errorf("place %d has the seed %#x", place, seed)
		}
		s.ended(place, shown(seed, "done"))
	}
}
