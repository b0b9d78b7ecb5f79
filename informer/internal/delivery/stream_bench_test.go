// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/store"
)

// BenchmarkStream_Relists measures a blocked EveryEvent handler while its kind
// is relisted repeatedly without changes.
func BenchmarkStream_Relists(b *testing.B) {
	const objects = 10_000
	for _, relists := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("objects=%d/relists=%d", objects, relists), func(b *testing.B) {
			changes := make([]store.Change, objects)
			for i := range changes {
				changes[i] = became(fmt.Sprint("pod-", i), "u@1", "u@1")
				changes[i].Same, changes[i].Resync, changes[i].Relisted = false, true, true
			}
			var held, counted, waiting float64
			for b.Loop() {
				s := newEventStream(Options{})
				before := heap()
				for range relists {
					for i := range changes {
						s.Push(changes[i], nil, false)
					}
				}
				held += float64(heap() - before)
				bytes, _ := s.Size()
				counted, waiting = counted+float64(bytes), waiting+float64(s.Len())
				runtime.KeepAlive(s)
			}
			b.ReportMetric(held/float64(b.N)/(1<<20), "MiB-held")
			b.ReportMetric(counted/float64(b.N)/(1<<20), "MiB-counted")
			b.ReportMetric(waiting/float64(b.N), "events")
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
