// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/cputime"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	duePerSecond    = 250_000
	dueLead         = 10 * time.Second // time for adding all keys first
	dueWorkers      = 4
	withinKeys      = 200_000 // beside spinning goroutines
	withinPerSecond = 50_000

	spinning = "FLYBALL_BENCH_SPIN" // set: this process only consumes processor time
)

// worker processes keys from q until it is shut down.
type worker func(q queue, work func(key))

func workByGet(q queue, work func(key)) {
	for k, shutdown := q.Get(); !shutdown; k, shutdown = q.Get() {
		work(k)
		q.Done(k)
	}
}

func workByKeys(q queue, work func(key)) {
	for k := range q.(*workqueue.Queue[key]).Keys() {
		work(k)
	}
}

// BenchmarkQueue_Lateness delays a million keys that fall due at 250,000 per second, and
// measures how late workers get them: on the machine as it is, and beside processes that
// consume all processor time they get.
func BenchmarkQueue_Lateness(b *testing.B) {
	keys := newKeys(million)
	for _, load := range []int{0, 12} {
		b.Run("beside-"+strconv.Itoa(load), func(b *testing.B) {
			spin(b, load)
			for _, p := range peers() {
				b.Run(p.name, func(b *testing.B) { lateness(b, keys, duePerSecond, p.make, workByGet) })
				if p.name == "flyball" {
					b.Run(p.name+"-keys", func(b *testing.B) { lateness(b, keys, duePerSecond, p.make, workByKeys) })
				}
			}
		})
	}
}

// BenchmarkQueue_LatenessWithin delays 200,000 keys that fall due at 50,000 per second, on
// two processors. Goroutines of the same program consume all processor time they get, so
// Go's scheduler decides when a worker or a timer runs.
func BenchmarkQueue_LatenessWithin(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	keys := newKeys(withinKeys)
	for _, spinners := range []int{0, 2, 8} {
		b.Run(strconv.Itoa(spinners), func(b *testing.B) {
			for _, p := range peers() {
				b.Run(p.name, func(b *testing.B) {
					defer spinWithin(spinners)()
					lateness(b, keys, withinPerSecond, p.make, workByGet)
				})
				if p.name == "flyball" {
					b.Run(p.name+"-keys", func(b *testing.B) {
						defer spinWithin(spinners)()
						lateness(b, keys, withinPerSecond, p.make, workByKeys)
					})
				}
			}
		})
	}
}

// spinWithin runs n goroutines that only consume processor time, until stop is called.
func spinWithin(n int) (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		wg.Wait()
	}
}

func lateness(b *testing.B, keys []key, perSecond int, newQueue func() queue, work worker) {
	var used, took time.Duration
	for b.Loop() {
		q := newQueue()
		start := time.Now().Add(dueLead)
		due := func(i int) time.Duration { return time.Duration(i) * time.Second / time.Duration(perSecond) }
		for i := range keys {
			// In an order other than that of the deadlines; 387,421 is coprime to a number
			// of keys whose prime factors are two and five.
			j := i * 387_421 % len(keys)
			q.AddAfter(keys[j], time.Until(start.Add(due(j))))
		}
		if time.Now().After(start) {
			b.Log("the keys were not all taken in when the first fell due")
		}
		late := make([][]time.Duration, dueWorkers)
		for w := range late {
			late[w] = make([]time.Duration, 0, len(keys))
		}
		var left atomic.Int64
		left.Store(int64(len(keys)))
		time.Sleep(time.Until(start))
		before := cputime.Used()
		var wg sync.WaitGroup
		for w := range dueWorkers {
			wg.Go(func() {
				work(q, func(k key) {
					i, _ := strconv.Atoi(k.Name)
					late[w] = append(late[w], time.Since(start.Add(due(i))))
					if left.Add(-1) == 0 {
						q.ShutDown()
					}
				})
			})
		}
		wg.Wait()
		used += cputime.Used() - before
		took += time.Since(start)
		all := slices.Concat(late...)
		slices.Sort(all)
		if len(all) != len(keys) || all[0] < 0 {
			b.Fatalf("handed out %d keys, the earliest %v after its deadline", len(all), all[0])
		}
		b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*len(keys)), "cpu-ns/item")
	b.ReportMetric(used.Seconds()/took.Seconds(), "processors")
	b.ReportMetric(0, "ns/op")
}

// spin runs n processes that only consume processor time, until the benchmark ends.
func spin(b *testing.B, n int) {
	for range n {
		cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestSpin$")
		cmd.Env = append(os.Environ(), spinning+"=1", "GOMAXPROCS=1")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// TestSpin is a process of a benchmark's load, not a test.
func TestSpin(t *testing.T) {
	if os.Getenv(spinning) == "" {
		t.Skip("runs in a child process of BenchmarkQueue_Lateness")
	}
	for {
	}
}
