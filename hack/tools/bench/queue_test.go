// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/cputime"
	"github.com/flyball-dev/flyball/workqueue"
)

func BenchmarkQueue_AddGetDone(b *testing.B) {
	forEach(b, func(b *testing.B, q queue) {
		keys := newKeys(1000)
		i, start := 0, cputime.Used()
		for b.Loop() {
			q.Add(keys[i])
			k, _ := q.Get()
			q.Done(k)
			if i++; i == len(keys) {
				i = 0
			}
		}
		perItem(b, 1, start)
	})
}

func BenchmarkQueue_AddQueued(b *testing.B) {
	forEach(b, func(b *testing.B, q queue) {
		k := newKeys(1)[0]
		q.Add(k)
		start := cputime.Used()
		for b.Loop() {
			q.Add(k)
		}
		perItem(b, 1, start)
	})
}

// BenchmarkQueue_Burst adds 1000 keys and processes them; a time is per key.
func BenchmarkQueue_Burst(b *testing.B) {
	forEach(b, func(b *testing.B, q queue) {
		keys := newKeys(1000)
		start := cputime.Used()
		for b.Loop() {
			for _, k := range keys {
				q.Add(k)
			}
			for range keys {
				k, _ := q.Get()
				q.Done(k)
			}
		}
		perItem(b, len(keys), start)
	})
}

// BenchmarkQueue_Retry runs AddRateLimited, Get, Forget, Done in bursts of 1000 keys; a
// time is per key.
func BenchmarkQueue_Retry(b *testing.B) {
	forEach(b, func(b *testing.B, q queue) {
		keys := newKeys(1000)
		start := cputime.Used()
		for b.Loop() {
			for _, k := range keys {
				q.AddRateLimited(k)
			}
			for range keys {
				k, _ := q.Get()
				q.Forget(k)
				q.Done(k)
			}
		}
		perItem(b, len(keys), start)
	})
}

// BenchmarkQueue_RetryDepth1 does the same with one key at a time: it includes the wake-up
// by a timer.
func BenchmarkQueue_RetryDepth1(b *testing.B) {
	forEach(b, func(b *testing.B, q queue) {
		k := newKeys(1)[0]
		start := cputime.Used()
		for b.Loop() {
			q.AddRateLimited(k)
			got, _ := q.Get()
			q.Forget(got)
			q.Done(got)
		}
		perItem(b, 1, start)
	})
}

// transfer is how many different keys one iteration of Contended moves.
const transfer = 200_000

// BenchmarkQueue_Contended runs n producers that add different keys and n workers that
// process them. "flyball" uses Get and Done as the peers do, "flyball-keys" ranges over
// Keys.
func BenchmarkQueue_Contended(b *testing.B) {
	keys := newKeys(transfer)
	for _, n := range []int{1, 4, 16} {
		b.Run(strconv.Itoa(n)+"x"+strconv.Itoa(n), func(b *testing.B) {
			for _, p := range peers() {
				b.Run(p.name, func(b *testing.B) {
					contend(b, keys, n, p.make, func(q queue, done *atomic.Int64) {
						for k, shutdown := q.Get(); !shutdown; k, shutdown = q.Get() {
							q.Done(k)
							done.Add(1)
						}
					})
				})
			}
			b.Run("flyball-keys", func(b *testing.B) {
				contend(b, keys, n, func() queue { return newFlyball() }, func(q queue, done *atomic.Int64) {
					for range q.(*workqueue.Queue[key]).Keys() {
						done.Add(1)
					}
				})
			})
		})
	}
}

// counter does not share its cache lines.
type counter struct {
	done atomic.Int64
	_    [120]byte
}

func contend(b *testing.B, keys []key, n int, newQueue func() queue, work func(queue, *atomic.Int64)) {
	q := newQueue()
	counters := make([]counter, n)
	var workers sync.WaitGroup
	for i := range counters {
		workers.Go(func() { work(q, &counters[i].done) })
	}
	want, start := int64(0), cputime.Used()
	for b.Loop() {
		want += int64(len(keys))
		for p := range n {
			workers.Go(func() {
				for i := p; i < len(keys); i += n {
					q.Add(keys[i])
				}
			})
		}
		for sum(counters) < want {
			time.Sleep(200 * time.Microsecond)
		}
	}
	b.ReportMetric(float64(b.N*len(keys))/b.Elapsed().Seconds()/1e6, "M/s")
	perItem(b, len(keys), start)
	q.ShutDown()
	workers.Wait()
}

func sum(counters []counter) (n int64) {
	for i := range counters {
		n += counters[i].done.Load()
	}
	return n
}

const million = 1_000_000

// BenchmarkQueue_BytesReady and BenchmarkQueue_BytesDelayed report the live heap per key of a queue with a million keys.
func BenchmarkQueue_BytesReady(b *testing.B) {
	measureBytes(b, func(q queue, k key) { q.Add(k) })
}

func BenchmarkQueue_BytesDelayed(b *testing.B) {
	measureBytes(b, func(q queue, k key) { q.AddAfter(k, time.Hour) })
}

func measureBytes(b *testing.B, add func(queue, key)) {
	keys := newKeys(million)
	for _, p := range peers() {
		b.Run(p.name, func(b *testing.B) {
			var bytes, nanos float64
			for b.Loop() {
				before := liveHeap()
				q := p.make()
				start := time.Now()
				for _, k := range keys {
					add(q, k)
				}
				nanos += float64(time.Since(start).Nanoseconds())
				time.Sleep(500 * time.Millisecond) // the peers add keys from goroutines
				bytes += float64(liveHeap()) - float64(before)
				q.ShutDown()
				runtime.KeepAlive(q)
			}
			b.ReportMetric(bytes/float64(b.N*million), "B/key")
			b.ReportMetric(nanos/float64(b.N*million), "ns/item")
			b.ReportMetric(0, "ns/op")
		})
	}
	runtime.KeepAlive(keys)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
