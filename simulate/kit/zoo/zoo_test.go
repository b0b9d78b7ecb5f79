// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

var (
	starts = flag.Int("zoo.starts", 0, "measure how many seeds it takes to find each bug, from so many first seeds")
	most   = flag.Int("zoo.most", 1000, "how many seeds are tried from each")
	right  = flag.Int("zoo.right", 0, "how many seeds the operators are run with that have no bug; 0: a few")
	vary   = flag.Bool("zoo.vary", false, "measure with variations of the seeds that show something new")
	only   = flag.String("zoo.only", "", "measure the bugs alone whose names contain this")
)

// animal is an operator with the bugs that can be planted in it.
type animal struct {
	name     string
	scenario func(bug string) func(*kit.World)
	bugs     []planted
}

type planted struct {
	name string
	seed uint64
}

var zoo = []animal{
	{"page", func(bug string) func(*kit.World) {
		return func(w *kit.World) {
			w.Run(setUpPages(bug))
			editPages(w)
		}
	}, []planted{
		{"delete by a stale read", 177},
		{"status written from a stale object", 2},
		{"spec written from a stale object", 13},
		{"patch of all annotations", 9},
		{"error swallowed after part of the work", 3},
		{"remembered before it is written", 2},
		{"UID not checked", 71},
		{"no owner", 1},
	}},
	{"store", func(bug string) func(*kit.World) {
		return func(w *kit.World) {
			c := newCloud(func(token string) bool { return w.Draw("cloud "+token, 8) == 0 })
			w.Run(setUpStores(bug, c))
			editStores(w, c)
		}
	}, []planted{
		{"finalizer removed before the clean-up", 6},
		{"bucket made before the finalizer", 2},
		{"bucket not looked for", 24},
		{"bucket known to memory alone", 1},
		{"clean-up by the status", 13},
		{"clean-up when the deletion is seen", 1},
		{"error of the clean-up swallowed", 6},
		{"two steps without recovery", 18},
		{"volumes freed by an old list", 6},
	}},
	{"pool", func(bug string) func(*kit.World) {
		return func(w *kit.World) {
			w.Run(setUpPools(bug))
			editPools(w)
		}
	}, []planted{
		{"owner set by a second write", 6},
		{"second step only after the first", 3},
		{"missing workers counted by a stale read", 2},
		{"surplus counted by a stale read", 10},
		{"status counted up and down", 1},
		{"names counted in memory", 4},
		{"workers known by their label", 24},
		{"error swallowed in a loop", 3},
		{"UID remembered by name", 24},
	}},
}

// config has all faults but Rewind: the cloud and the memory of the checks are not
// rewound.
func config() kit.Config {
	return kit.Config{
		Seeds: 20, Faults: kit.Swarm().Without(kit.Rewind(1)), CRDs: []string{"testdata/crds"}, Scheme: scheme,
		Actors: simulate.Actors{GarbageCollector: true}, Vary: *vary,
	}
}

// An operator without a bug passes.
func TestZoo_OperatorsWithoutABugAreRight(t *testing.T) {
	for _, a := range zoo {
		t.Run(a.name, func(t *testing.T) {
			cfg := config()
			// While a watch of workers is silent, for up to nine minutes, a pool makes tickets
			// for workers that are gone, and the garbage collector deletes them.
			cfg.MaxEvents = 100_000
			if *right > 0 {
				cfg.Seeds = *right
			}
			kit.Test(t, cfg, a.scenario(""))
		})
	}
}

// Each bug is found with the seed that it is pinned to or, because a change of Flyball
// changes histories, with one of the next.
func TestZoo_EachBugIsFound_K10(t *testing.T) {
	for _, a := range zoo {
		for _, bug := range a.bugs {
			t.Run(a.name+"/"+bug.name, func(t *testing.T) {
				t.Parallel()
				const tries = 20
				for seed := bug.seed; seed < bug.seed+tries; seed++ {
					if found(kit.Run(t, config(), seed, a.scenario(bug.name))) {
						return
					}
				}
				t.Errorf("seeds %d to %d do not find it; take one that does from make zoo", bug.seed, bug.seed+tries-1)
			})
		}
	}
}

// The number of seeds to find each bug, from several first seeds: at most 50 at the
// median, and at most 1000.
func TestZoo_SeedsToFindEachBug(t *testing.T) {
	if *starts == 0 {
		t.Skip("make zoo runs it")
	}
	for _, a := range zoo {
		for _, bug := range a.bugs {
			if !strings.Contains(a.name+"/"+bug.name, *only) {
				continue
			}
			t.Run(a.name+"/"+bug.name, func(t *testing.T) {
				t.Parallel()
				var took []int
				var how []string
				first, began := uint64(0), time.Now()
				for i := range *starts {
					start := uint64(i)*10000 + 1
					n, h := search(t, a.scenario(bug.name), start)
					took = append(took, n)
					if h == nil {
						how = append(how, "never")
						continue
					}
					how = append(how, h.Violations[slices.IndexFunc(h.Violations, shows)].Invariant)
					if first == 0 {
						first = h.Seed
					}
				}
				slices.Sort(took)
				median := took[len(took)/2]
				fmt.Printf("| %s | %s | %d | %d | %#x | %s | %v |\n", a.name, bug.name, median, took[len(took)-1], first, strings.Join(slices.Compact(slices.Sorted(slices.Values(how))), ", "), time.Since(began).Round(time.Second))
				if median > 50 || took[len(took)-1] > 1000 {
					t.Errorf("it took %v seeds; wanted are 50 at the median and 1000 at most", took)
				}
			})
		}
	}
}

func found(h *kit.History) bool { return slices.ContainsFunc(h.Violations, shows) }

// shows reports whether a violation is a bug of an operator: too many lists are not.
func shows(v kit.Violation) bool { return v.Invariant != "V14" }

// search runs seeds and their variations until one fails, or more than -zoo.most have
// run.
func search(t *testing.T, scenario func(*kit.World), start uint64) (int, *kit.History) {
	h, runs := kit.Find(t, config(), start, *most, scenario, found)
	if h == nil {
		return *most + 1, nil
	}
	return runs, h
}
