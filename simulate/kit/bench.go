// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"runtime"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/cputime"
)

// Bench measures runs of scenario with the seeds 1, 2, 3 and so on, one at a time,
// after one warm-up run. For each run it reports the processor time, where available,
// the virtual time, and the requests and events of the history, besides the elapsed
// time. cfg is that of Test; Seeds is not needed. A violation or misuse fails b. Bench
// blocks until b is done.
func Bench(b *testing.B, cfg Config, scenario func(*World)) {
	b.Helper()
	cfg.Seeds = max(cfg.Seeds, 1)
	if _, _, err := cfg.complete(scenario == nil); err != nil {
		b.Fatalf("kit.Bench: %v", err)
	}
	collectRarely(b)
	var seed uint64
	once := func() *History {
		seed++
		h := lent(b, func(t *testing.T) *History { return Run(t, cfg, seed, scenario) })
		if len(h.Violations) > 0 {
			b.Fatalf("kit.Bench: seed %#x: %s", seed, h.Violations[0])
		}
		return h
	}
	once() // warm up
	seed = 0
	var cpu, virtual time.Duration
	var requests, events int
	for start := cputime.Used(); b.Loop(); cpu = cputime.Used() - start {
		h := once()
		events += len(h.Events)
		virtual += h.Events[len(h.Events)-1].At
		for _, e := range h.Events {
			if e.What == Asked {
				requests++
			}
		}
	}
	n := float64(b.N)
	if cpu > 0 {
		b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/op")
	}
	b.ReportMetric(virtual.Seconds()/n, "virtual-s/op")
	b.ReportMetric(float64(requests)/n, "requests/op")
	b.ReportMetric(float64(events)/n, "events/op")
}

// lent runs f with a testing.T, which a bubble requires and b does not have.
func lent(b *testing.B, f func(*testing.T) *History) (h *History) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
		if h == nil { // else called again for -count or -cpu
			runtime.GOMAXPROCS(procs)
			h = f(t)
		}
	}}})
	if h == nil {
		b.Fatal("kit.Bench: the run was skipped; leave out -skip")
	}
	return h
}
