// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/internal/cputime"
)

const (
	syncPods = 100_000
	livePods = 20_000
	// round is the number of updates per iteration.
	round = 100_000
)

// allocations counts the allocations between its two calls.
type allocations struct{ bytes, mallocs uint64 }

func allocated() allocations {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return allocations{m.TotalAlloc, m.Mallocs}
}

func (a *allocations) add(from, to allocations) {
	a.bytes += to.bytes - from.bytes
	a.mallocs += to.mallocs - from.mallocs
}

func (a allocations) report(b *testing.B, per string, items int) {
	n := float64(b.N * items)
	b.ReportMetric(float64(a.bytes)/n, "B/"+per)
	b.ReportMetric(float64(a.mallocs)/n, "mallocs/"+per)
}

// BenchmarkInformer_Sync stores 100,000 Pods that are decoded already, by streaming list or
// by list, with one handler. synced-ms is the time until all are in the store, handled-ms
// the time until the handler has seen all.
func BenchmarkInformer_Sync(b *testing.B) {
	pods := readyPods(syncPods)
	for _, form := range []struct {
		name  string
		paged bool
	}{{"WatchList", false}, {"List", true}} {
		b.Run(form.name, func(b *testing.B) {
			forInformers(b, func(b *testing.B, newInformer func(testing.TB, *feed) contestant) {
				syncs(b, len(pods), func() contestant { return newInformer(b, newFeed(pods, form.paged)) })
			}, "flyball", "flyball-channel", "flyball-clientgo", "client-go", "controller-runtime")
		})
	}
	runtime.KeepAlive(pods)
}

// syncs measures the start of an informer until it has stored n Pods, and returns the
// processor time.
func syncs(b *testing.B, n int, newInformer func() contestant) time.Duration {
	var synced, handled, cpu time.Duration
	var sum allocations
	for b.Loop() {
		b.StopTimer()
		i, seen := newInformer(), 0
		done := i.handle(func(*corev1.Pod) { seen++ })
		runtime.GC()
		used, before, begin := cputime.Used(), allocated(), time.Now()
		b.StartTimer()

		stop := started(i)
		<-i.stored()
		synced += time.Since(begin)
		<-done
		handled += time.Since(begin)

		b.StopTimer()
		cpu += cputime.Used() - used
		sum.add(before, allocated())
		stop()
		if seen < n {
			b.Fatalf("the handler saw %d of %d Pods", seen, n)
		}
		b.StartTimer()
	}
	b.ReportMetric(synced.Seconds()*1e3/float64(b.N), "synced-ms")
	b.ReportMetric(handled.Seconds()*1e3/float64(b.N), "handled-ms")
	b.ReportMetric(cpu.Seconds()*1e3/float64(b.N), "cpu-ms")
	b.ReportMetric(0, "ns/op")
	sum.report(b, "object", n)
	return cpu
}

// BenchmarkInformer_Updates sends 100,000 updates in random order to an informer of 20,000
// Pods, as fast as the informer accepts them, until every handler has seen the last.
func BenchmarkInformer_Updates(b *testing.B) {
	pods := readyPods(livePods)
	for _, workload := range []struct {
		name     string
		handlers int
	}{{"1", 1}, {"10", 10}} {
		b.Run(workload.name, func(b *testing.B) {
			forInformers(b, func(b *testing.B, newInformer func(testing.TB, *feed) contestant) {
				f := newFeed(pods, false)
				f.backlog = -1 // as for the peers
				updates(b, f, newInformer, workload.handlers)
			}, "flyball", "flyball-every", "flyball-channel", "flyball-channel-every", "flyball-clientgo", "client-go", "controller-runtime")
		})
	}
	runtime.KeepAlive(pods)
}

func updates(b *testing.B, f *feed, newInformer func(testing.TB, *feed) contestant, handlers int) {
	i := newInformer(b, f)
	var last atomic.Pointer[corev1.Pod] // that handlers report
	var told atomic.Int64
	var synced []<-chan struct{}
	reported := make(chan struct{}, handlers)
	for range handlers {
		synced = append(synced, i.handle(func(pod *corev1.Pod) {
			told.Add(1)
			if pod == last.Load() {
				reported <- struct{}{}
			}
		}))
	}
	stop := started(i)
	defer stop()
	for _, done := range synced {
		<-done
	}
	told.Store(0)
	random := rand.New(rand.NewPCG(1, 2))
	var cpu time.Duration
	var sum allocations
	for b.Loop() {
		b.StopTimer()
		batch := make([]*corev1.Pod, round)
		for n := range batch {
			batch[n] = f.next(f.pods[random.IntN(len(f.pods))])
		}
		last.Store(batch[round-1])
		runtime.GC()
		used, before := cputime.Used(), allocated()
		b.StartTimer()

		f.changes <- batch
		for range handlers {
			<-reported
		}

		b.StopTimer()
		cpu += cputime.Used() - used
		sum.add(before, allocated())
		b.StartTimer()
	}
	n := float64(b.N * round)
	b.ReportMetric(n/b.Elapsed().Seconds(), "updates/s")
	b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/update")
	b.ReportMetric(float64(told.Load())/n/float64(handlers), "calls/update")
	b.ReportMetric(0, "ns/op")
	sum.report(b, "update", round)
}

// BenchmarkInformer_Read reads 20,000 Pods during 10,000 updates per second.
func BenchmarkInformer_Read(b *testing.B) {
	pods := readyPods(livePods)
	keys := make([]key, livePods)
	for n := range keys {
		keys[n] = podKey(n)
	}
	crowded := podNode(100) // with 21 Pods
	for _, read := range []struct {
		name string
		one  func(b *testing.B, r reader, n int)
	}{
		{"Get", func(b *testing.B, r reader, n int) {
			if !r.get(keys[n*7919%livePods]) {
				b.Fatal("a Pod is not found")
			}
		}},
		{"ByIndex21", func(b *testing.B, r reader, _ int) {
			if n := r.onNode(crowded); n != 21 {
				b.Fatalf("%d Pods on a node, want 21", n)
			}
		}},
		{"List20k", func(b *testing.B, r reader, _ int) {
			if n := r.list(); n != livePods {
				b.Fatalf("a list of %d Pods, want %d", n, livePods)
			}
		}},
	} {
		b.Run(read.name, func(b *testing.B) {
			forInformers(b, func(b *testing.B, newInformer func(testing.TB, *feed) contestant) {
				f := newFeed(pods, false)
				i := newInformer(b, f)
				stop := trickle(b, f, i)
				defer stop()
				r, n := i.reader(), 0
				b.ReportAllocs()
				for b.Loop() {
					read.one(b, r, n)
					n++
				}
			}, "flyball", "flyball-clientgo", "client-go", "controller-runtime")
		})
	}
}

// trickle runs i and sends it ten updates a millisecond.
func trickle(b *testing.B, f *feed, i contestant) (stop func()) {
	synced := i.handle(func(*corev1.Pod) {})
	end := started(i)
	<-synced
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		random := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-tick.C:
				batch := make([]*corev1.Pod, 10)
				for n := range batch {
					batch[n] = f.next(f.pods[random.IntN(len(f.pods))])
				}
				select {
				case f.changes <- batch:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
		end()
	}
}

// BenchmarkInformer_Pause measures the time of an update from the watch to a handler while
// one reader lists all 20,000 Pods in a loop: the cost for the writer of a list that holds
// a lock. Updates are at least a tenth of a millisecond apart, so each list can block one.
func BenchmarkInformer_Pause(b *testing.B) {
	pods := readyPods(livePods)
	forInformers(b, func(b *testing.B, newInformer func(testing.TB, *feed) contestant) {
		f := newFeed(pods, false)
		i := newInformer(b, f)
		var sent atomic.Pointer[corev1.Pod]
		seen := make(chan time.Time)
		synced := i.handle(func(pod *corev1.Pod) {
			if pod == sent.Load() {
				seen <- time.Now()
			}
		})
		stop := started(i)
		defer stop()
		<-synced
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		r := i.reader()
		wg.Go(func() {
			for ctx.Err() == nil {
				r.list()
			}
		})
		var late []time.Duration
		n := 0
		for b.Loop() {
			pod := f.next(f.pods[n%livePods])
			n++
			sent.Store(pod)
			time.Sleep(100 * time.Microsecond)
			begin := time.Now()
			f.changes <- []*corev1.Pod{pod}
			late = append(late, (<-seen).Sub(begin))
		}
		cancel()
		wg.Wait()
		slices.Sort(late)
		b.ReportMetric(float64(late[len(late)/2].Nanoseconds())/1e3, "p50-us")
		b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds())/1e3, "p99-us")
		b.ReportMetric(0, "ns/op")
	}, "flyball", "flyball-clientgo", "client-go", "controller-runtime")
}

// BenchmarkInformer_Blocked sends 300,000 updates of one object while one handler does not
// return, and measures the growth of the heap.
func BenchmarkInformer_Blocked(b *testing.B) {
	const sends = 300_000
	forInformers(b, func(b *testing.B, newInformer func(testing.TB, *feed) contestant) {
		grown := 0.0
		for b.Loop() {
			f := newFeed(readyPods(1), false)
			i := newInformer(b, f)
			gate, last := make(chan struct{}), make(chan struct{})
			first := true
			synced := i.handle(func(pod *corev1.Pod) {
				if first {
					first = false
					return
				}
				<-gate
			})
			passing := i.handle(func(pod *corev1.Pod) {
				if pod.Annotations["last"] != "" {
					close(last)
				}
			})
			stop := started(i)
			<-synced
			<-passing
			before := liveHeap()
			for sent := range sends {
				pod := f.next(f.pods[0])
				if sent == sends-1 {
					pod.Annotations = map[string]string{"last": "true"}
				}
				f.changes <- []*corev1.Pod{pod}
			}
			<-last
			grown += float64(liveHeap()) - float64(before)
			close(gate)
			stop()
		}
		b.ReportMetric(grown/float64(b.N)/(1<<20), "MiB")
		b.ReportMetric(0, "ns/op")
	}, "flyball", "flyball-every", "flyball-clientgo", "client-go", "controller-runtime")
}
