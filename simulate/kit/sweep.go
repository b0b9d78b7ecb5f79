// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

const (
	// enough failing seeds, after which the rest are skipped.
	enough = 3
	// One run in twiceIn is repeated, including the first.
	twiceIn = 100
)

// Test runs scenario once for each seed, each time in its own synctest bubble and
// subtest, several at the same time. It fails t with one line for each violation and
// one that replays the run. Misuse fails t with what to write instead. It returns when
// all subtests have ended.
func Test(t *testing.T, cfg Config, scenario func(*World)) {
	t.Helper()
	first, count, err := cfg.complete(scenario == nil)
	if err != nil {
		t.Fatalf("kit.Test: %v", err)
	}
	collectRarely(t)
	cfg.probes = newProbes()
	s := newSweep(first, count, *oneSeed == "" && cfg.varies())
	failed := new(atomic.Int32)
	var workers sync.WaitGroup
	for range min(atOnce(), s.count) {
		workers.Go(func() {
			for place, seed := range s.seeds {
				var h *History
				t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
					if failed.Load() >= enough {
						t.Skipf("%d seeds have failed", enough)
					}
					h = Run(t, cfg, seed, scenario)
					if h.Inexact == "" && !h.abandoned && (place == 0 || seededrand.Drawn(seed, "twice", 0)%twiceIn == 0) {
						anew := cfg
						anew.probes = nil
						h.compare(Run(t, anew, seed, scenario))
					}
					if len(h.Violations) > 0 {
						failed.Add(1)
						t.Error(h.report(artifacts(t), Shrink(t, cfg, h, scenario)))
					}
				})
				s.ended(place, h)
			}
		})
	}
	workers.Wait()
}

// Find runs seeds as Test does, from start on and one after the other, until found
// accepts a history, and returns it with the number of runs. After most runs it returns
// nil. Misuse fails t.
func Find(t *testing.T, cfg Config, start uint64, most int, scenario func(*World), found func(*History) bool) (h *History, runs int) {
	t.Helper()
	cfg.Seeds = max(most, 1)
	if _, _, err := cfg.complete(scenario == nil); err != nil {
		t.Fatalf("kit.Find: %v", err)
	}
	collectRarely(t)
	cfg.probes = newProbes()
	s := newSweep(start, cfg.Seeds, cfg.varies())
	for place, seed := range s.seeds {
		h := Run(t, cfg, seed, scenario)
		if found(h) {
			return h, place + 1
		}
		s.ended(place, h)
	}
	return nil, most
}

func atOnce() int {
	if f := flag.Lookup("test.parallel"); f != nil {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && n > 0 {
			return n
		}
	}
	return runtime.GOMAXPROCS(0)
}

// varies reports whether a sweep has variations.
func (cfg *Config) varies() bool { return cfg.Vary && cfg.Faults.allowsWriteTrigger() }

// sweep is the order of seeds. If it varies, every third place is for a variation of a
// seed that has shown something new. The choice depends on the histories of earlier
// places, not on when they end: it uses all but the last few places, which may still be
// running.
type sweep struct {
	start  uint64
	count  int
	varies bool
	mu     struct {
		sync.Mutex
		changed *sync.Cond
		next    int // next place
		due     int // place of the next variation
		ran     map[int]ran
		counted int // places whose traits are counted
		seen    map[string]bool
		varied  []*origin // in the order of their seeds' places
	}
}

type ran struct {
	seed   uint64
	traits []string
}

type origin struct {
	seed       uint64
	news       int // traits that it or its variations showed first
	variations int
}

const (
	every = 3 // one of so many places is for a variation
	// beside is how many places before one may still be running.
	beside = 8
)

func newSweep(start uint64, count int, varies bool) *sweep {
	s := &sweep{start: start, count: count, varies: varies}
	s.mu.changed = sync.NewCond(&s.mu)
	s.mu.due = beside
	for s.mu.due%every != every-1 {
		s.mu.due++
	}
	s.mu.ran, s.mu.seen = map[int]ran{}, map[string]bool{}
	return s
}

func (s *sweep) isVariation(place int) bool {
	return s.varies && place >= beside && place%every == every-1
}

// fresh returns the seed of a place that is not for a variation.
func (s *sweep) fresh(place int) uint64 {
	variations := 0
	if s.varies {
		variations = max(place-beside+every-1, 0) / every
	}
	return s.start + uint64(place-variations)
}

// seeds yields places and their seeds. Several goroutines can share it. It blocks until
// the runs that decide on a seed have ended.
func (s *sweep) seeds(yield func(place int, seed uint64) bool) {
	for {
		place, seed, ok := s.take()
		if !ok || !yield(place, seed) {
			return
		}
	}
}

func (s *sweep) take() (place int, seed uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.next >= s.count {
		return 0, 0, false
	}
	place, seed = s.mu.next, s.fresh(s.mu.next)
	s.mu.next++
	if s.isVariation(place) {
		for s.mu.due != place || !s.countTraitsLocked(place-beside) {
			s.mu.changed.Wait()
		}
		seed = s.varyLocked()
		s.mu.due += every
		s.mu.changed.Broadcast()
	}
	s.mu.ran[place] = ran{seed: seed}
	return place, seed, true
}

// ended records the history of a place; nil: it was not run.
func (s *sweep) ended(place int, h *History) {
	traits := []string{} // not nil: it has ended
	if h != nil && s.varies {
		traits = append(traits, h.traits()...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ran[place] = ran{s.mu.ran[place].seed, traits}
	s.mu.changed.Broadcast()
}

// countTraitsLocked counts the new traits of all places up to one, in order, and reports
// whether all have ended.
func (s *sweep) countTraitsLocked(upTo int) bool {
	for ; s.mu.counted <= upTo; s.mu.counted++ {
		r := s.mu.ran[s.mu.counted]
		if r.traits == nil {
			return false
		}
		delete(s.mu.ran, s.mu.counted)
		news := 0
		for _, trait := range r.traits {
			if !s.mu.seen[trait] {
				s.mu.seen[trait] = true
				news++
			}
		}
		seed, _ := ofVariation(r.seed)
		i := slices.IndexFunc(s.mu.varied, func(o *origin) bool { return o.seed == seed })
		if i < 0 {
			i = len(s.mu.varied)
			s.mu.varied = append(s.mu.varied, &origin{seed: seed})
		}
		s.mu.varied[i].news += news
	}
	return true
}

// varyLocked returns the next variation of the seed with most new traits per variation;
// of several the last.
func (s *sweep) varyLocked() uint64 {
	can := slices.DeleteFunc(slices.Clone(s.mu.varied), func(o *origin) bool { return o.variations == mostVariations })
	best := slices.MaxFunc(can, func(a, b *origin) int {
		return cmp.Or(
			cmp.Compare(a.news*(b.variations+1), b.news*(a.variations+1)),
			cmp.Compare(b.variations, a.variations),
			cmp.Compare(a.seed, b.seed),
		)
	})
	best.variations++
	return variation(best.seed, best.variations)
}

// traits returns what a run shows of the program's behaviour: outcomes of reconciles,
// failed writes, and sequences of writes, by process. They name no object.
func (h *History) traits() (out []string) {
	seen := map[string]bool{}
	add := func(format string, args ...any) {
		if trait := fmt.Sprintf(format, args...); !seen[trait] {
			seen[trait] = true
			out = append(out, trait)
		}
	}
	last, of := "", map[string]string{}
	for _, e := range h.Events {
		switch who := cmp.Or(programOf(e.Who), e.Who); {
		case e.What == Stopping:
			return out
		case h.renews(e):
		case e.What == Ended:
			add("%s %s ends with %s", who, e.Kind, e.Name)
		case e.What == Answered && writes(e.Name) && (e.Code == 0 || e.Code >= 400):
			add("%s %s %s: %d", who, e.Name, e.Kind, e.Code)
		case e.What == Changed && !e.Quiet:
			what, object := fmt.Sprintf("%s %s %s", who, e.Name, e.Kind), e.Kind+" "+e.Key
			add("%s, then %s", last, what)
			add("%s, then %s of the same", of[object], what)
			last, of[object] = what, what
		}
	}
	for _, v := range h.Violations {
		add("violates %s", v.Invariant)
	}
	return out
}
