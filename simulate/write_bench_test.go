// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flyball-dev/flyball/simulate"
)

// BenchmarkServer_Write is one write in the process, without a network.
func BenchmarkServer_Write(b *testing.B) {
	value := strings.Repeat("x", 100)
	var n atomic.Int64
	for _, c := range []struct {
		name string
		do   func(s *simulate.Server, n int64) int
	}{
		{"create", func(s *simulate.Server, n int64) int {
			return directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"v":%q}}`, n, value)).Code
		}},
		{"update", func(s *simulate.Server, n int64) int {
			return directly(s, "PUT", fmt.Sprintf("%s/u%d", mapsPath, n%100), "application/json", fmt.Sprintf(`{"metadata":{"name":"u%d"},"data":{"v":"%d"}}`, n%100, n)).Code
		}},
		{"patch", func(s *simulate.Server, n int64) int {
			return directly(s, "PATCH", fmt.Sprintf("%s/u%d", mapsPath, n%100), "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":"%d"}}`, n)).Code
		}},
		{"apply", func(s *simulate.Server, n int64) int {
			return directly(s, "PATCH", fmt.Sprintf("%s/u%d?fieldManager=m&force=true", mapsPath, n%100), "application/apply-patch+yaml", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u%d"},"data":{"v":"%d"}}`, n%100, n)).Code
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
			for n := range 100 {
				directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"u%d"},"data":{"v":"-"}}`, n))
			}
			begin := cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if code := c.do(s, n.Add(1)); code >= http.StatusBadRequest {
						b.Errorf("got %d", code)
						return
					}
				}
			})
			reportCPU(b, begin)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkServer_Hold is what a server with 100,000 ConfigMaps of 2 KiB takes.
func BenchmarkServer_Hold(b *testing.B) {
	const count = 100_000
	value := strings.Repeat("x", 2048)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
		for n := range count {
			directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"v":%q}}`, n, value))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		runtime.KeepAlive(s)
	}
}
