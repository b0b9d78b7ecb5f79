// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/cputime"
	"github.com/flyball-dev/flyball/simulate"
)

// reportCPU says how long the process has worked for each of b's rounds.
func reportCPU(b *testing.B, since time.Duration) {
	b.ReportMetric(float64((cputime.Used()-since).Microseconds())/float64(b.N), "cpu-µs/op")
}

// BenchmarkServer_Start is a new server and its first answer.
func BenchmarkServer_Start(b *testing.B) {
	for _, c := range []struct{ name, path string }{{"new", ""}, {"first answer", mapsPath}} {
		b.Run(c.name, func(b *testing.B) {
			begin := cputime.Used()
			for b.Loop() {
				s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
				if c.path != "" {
					directly(s, http.MethodGet, c.path, "", "")
				}
			}
			reportCPU(b, begin)
		})
	}
}

// discard is an answer that nobody reads.
type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Flush()              {}
func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// BenchmarkServer_Read lists and watches 100,000 ConfigMaps of 2 KiB.
func BenchmarkServer_Read(b *testing.B) {
	const count = 100_000
	value := strings.Repeat("x", 2048)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
	for n := range count {
		directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"v":%q}}`, n, value))
	}
	for _, c := range []struct{ name, query, accept string }{
		{"page of 500", "?limit=500", "application/json"},
		{"page of 500 in protobuf", "?limit=500", "application/vnd.kubernetes.protobuf"},
		{"one by name", "?fieldSelector=metadata.name%3Dc77777", "application/json"},
		{"all", "", "application/json"},
		{"streaming list", "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", "application/json"},
	} {
		b.Run(c.name, func(b *testing.B) {
			begin := cputime.Used()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodGet, "http://simulated"+mapsPath+c.query, nil)
				req.Header.Set("Accept", c.accept)
				answer := &discard{header: http.Header{}}
				s.ServeHTTP(answer, req)
				if answer.bytes == 0 {
					b.Fatal("got nothing")
				}
			}
			reportCPU(b, begin)
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Logf("held with what the lists leave behind: %d MiB", (after.HeapAlloc-before.HeapAlloc)>>20)
	runtime.KeepAlive(s)
}
