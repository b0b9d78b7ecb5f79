// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package seededrand

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestInstants_AreEachGivenOnce_K1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, now, seen := NewInstants(), time.Now(), map[time.Time]bool{}
		for n := range 5000 {
			at := i.Take(now, now.Add(time.Duration(n%7)))
			if seen[at] || !at.After(now) {
				t.Fatalf("gave %v a second time, or not after now", at)
			}
			seen[at] = true
		}
	})
}

// The names of the sleepers determine who gets which moment, not the order of the
// calls.
func TestInstants_WhoAsksFirstDecidesNothing_K1(t *testing.T) {
	now := time.Unix(1000, 0)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		type ask struct {
			name string
			at   time.Time
		}
		asks := make([]ask, 1+random.IntN(30))
		for n := range asks {
			asks[n] = ask{fmt.Sprintf("step %d", n), now.Add(time.Duration(1 + random.IntN(12)))}
		}
		moments := func() string {
			i, placed := NewInstants(), map[string]*sleeper{}
			for _, n := range random.Perm(len(asks)) {
				placed[asks[n].name] = i.Place(now, asks[n].at, asks[n].name)
			}
			text := ""
			for _, a := range asks {
				text += fmt.Sprintln(a.name, i.momentOf(placed[a.name]).Sub(now))
			}
			return text
		}
		if first, second := moments(), moments(); first != second {
			t.Fatalf("seed %d: asked in one order the moments are\n%sand in another\n%s", seed, first, second)
		}
	}
}
