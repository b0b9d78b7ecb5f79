// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
)

const (
	liveServer = "FLYBALL_BENCH_SERVER" // set: this process is a measured informer of the Pods there
	liveLast   = "FLYBALL_BENCH_LAST"   // the version of the last update
)

// liveRun is what one process needed.
type liveRun struct {
	StartPeakRSS, PeakRSS int64
	StartCPU, UpdateCPU   time.Duration
	Wall                  time.Duration // of the updates
	Heap                  uint64        // after the start
	Allocated             uint64        // by the updates
	GC, Busy              float64       // seconds of processor time during the updates: of the collector, and of all
	Cycles                uint32
}

// BenchmarkInformer_Live starts a process with an informer of 100,000 Pods from protobuf
// over a local connection, and then sends 60,000 updates, 1,000 per second. managedFields
// are on the wire and dropped by all. It reports the peak of resident memory of the start
// and of all, and what the garbage collector takes of the processor time during the
// updates, without that which would be idle. FLYBALL_BENCH_LIVE_PODS, FLYBALL_BENCH_UPDATES
// and FLYBALL_BENCH_RATE change the sizes; a rate of 0 is as fast as updates are read.
func BenchmarkInformer_Live(b *testing.B) {
	pods := cluster.NewPods(cluster.PodOptions{Count: sized(b, "LIVE_PODS", 100_000), ManagedFields: true})
	w := podWire(b, cluster.Protobuf, pods)
	rate, n := sized(b, "RATE", 1000), sized(b, "UPDATES", 60_000)
	for _, name := range slices.Concat(onWire, levers) {
		b.Run(name, func(b *testing.B) {
			var sum liveRun
			for b.Loop() {
				sum.add(liveChild(b, w, pods, name, rate, n))
			}
			sum.report(b, n)
		})
	}
	runtime.KeepAlive(w)
}

func (r *liveRun) add(s liveRun) {
	r.StartPeakRSS, r.PeakRSS = max(r.StartPeakRSS, s.StartPeakRSS), max(r.PeakRSS, s.PeakRSS)
	r.StartCPU, r.UpdateCPU, r.Wall = r.StartCPU+s.StartCPU, r.UpdateCPU+s.UpdateCPU, r.Wall+s.Wall
	r.Heap, r.Allocated, r.Cycles = r.Heap+s.Heap, r.Allocated+s.Allocated, r.Cycles+s.Cycles
	r.GC, r.Busy = r.GC+s.GC, r.Busy+s.Busy
}

func (r *liveRun) report(b *testing.B, updates int) {
	runs := float64(b.N)
	b.ReportMetric(float64(r.StartPeakRSS)/1e6, "start-peak-RSS-MB")
	b.ReportMetric(float64(r.PeakRSS)/1e6, "peak-RSS-MB")
	b.ReportMetric(float64(r.Heap)/1e6/runs, "heap-MB")
	b.ReportMetric(r.StartCPU.Seconds()/runs, "start-cpu-s")
	if updates > 0 {
		n := float64(updates) * runs
		b.ReportMetric(r.UpdateCPU.Seconds()*1e6/n, "cpu-us/update")
		b.ReportMetric(float64(r.Allocated)/n, "B/update")
		b.ReportMetric(n/r.Wall.Seconds(), "updates/s")
		b.ReportMetric(100*r.GC/r.Busy, "gc-%-of-cpu")
		b.ReportMetric(float64(r.Cycles)/runs, "gc-cycles")
	}
	b.ReportMetric(0, "ns/op")
}

// liveChild runs one informer in a process of its own, which begins the updates by a
// request.
func liveChild(b *testing.B, w *wire, pods *cluster.Pods, name string, rate, n int) (run liveRun) {
	last := ""
	if n > 0 {
		last = strconv.FormatInt(pods.Version()+int64(n), 10)
	}
	mux := http.NewServeMux()
	mux.Handle("/", w)
	mux.HandleFunc("/begin", func(_ http.ResponseWriter, r *http.Request) { pace(b, w, pods, rate, n, r.Context().Done()) })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer server.CloseClientConnections()
	childResult(b, name, "^TestInformer_LiveChild$", []string{
		childPeer + "=" + name, liveServer + "=" + server.URL, liveLast + "=" + last,
	}, &run)
	return run
}

// pace sends n updates at rate per second, every 10 ms; as fast as they are read if rate
// is 0.
func pace(b *testing.B, w *wire, pods *cluster.Pods, rate, n int, done <-chan struct{}) {
	log := newChangeLog(encoder(b, w.form), pods)
	begin := time.Now()
	for sent := 0; sent < n; {
		part := min(100, n-sent)
		if rate > 0 {
			time.Sleep(10 * time.Millisecond)
			part = min(int(time.Since(begin).Seconds()*float64(rate)), n) - sent
		}
		frames, _ := log.next(b, part)
		select {
		case w.changes <- frames:
		case <-done:
			return
		}
		sent += part
	}
}

// TestInformer_LiveChild is the measured process; by itself it does nothing.
func TestInformer_LiveChild(t *testing.T) {
	server := os.Getenv(liveServer)
	if server == "" {
		t.Skip("it is a part of BenchmarkInformer_Live")
	}
	i := wired(t, wireConfig(server, cluster.Protobuf, nil), os.Getenv(childPeer), dropped)
	var run liveRun
	last, seen := os.Getenv(liveLast), make(chan struct{})
	var updating atomic.Bool
	synced := i.handle(func(pod *corev1.Pod) {
		if updating.Load() && pod.ResourceVersion == last {
			close(seen)
		}
	})
	stop := started(i)
	<-synced
	run.StartCPU, _ = usedSoFar(t)
	run.StartPeakRSS = peakRSS(t)
	run.Heap = liveHeap()
	updating.Store(true)
	if last != "" {
		measureUpdates(t, &run, server, seen)
	}
	run.PeakRSS = peakRSS(t)
	out, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("RESULT %s\n", out)
	stop()
}

// measureUpdates has the server send updates until seen, and measures this process.
func measureUpdates(t *testing.T, run *liveRun, server string, seen <-chan struct{}) {
	gc, busy := processorSeconds()
	before, begin := allocated(), time.Now()
	used, _ := usedSoFar(t)
	cycles := collections()
	var asking sync.WaitGroup
	asking.Go(func() {
		answer, err := http.Get(server + "/begin")
		if err != nil {
			t.Error(err)
			return
		}
		answer.Body.Close()
	})
	<-seen
	asking.Wait()
	now, _ := usedSoFar(t)
	run.Wall, run.UpdateCPU, run.Allocated = time.Since(begin), now-used, allocated().bytes-before.bytes
	gcNow, busyNow := processorSeconds()
	run.GC, run.Busy, run.Cycles = gcNow-gc, busyNow-busy, collections()-cycles
}

// processorSeconds returns the processor time of the garbage collector, and that of the
// process. Neither has what the collector does on processors that are idle otherwise. On a
// busy machine both include time in which other processes run, the collector's more of it,
// since it runs for longer at a time.
func processorSeconds() (gc, busy float64) {
	var seconds [4]float64
	for i, class := range []string{"gc/total", "gc/mark/idle", "total", "idle"} {
		sample := []metrics.Sample{{Name: "/cpu/classes/" + class + ":cpu-seconds"}}
		metrics.Read(sample)
		seconds[i] = sample[0].Value.Float64()
	}
	return seconds[0] - seconds[1], seconds[2] - seconds[3] - seconds[1]
}

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// peakRSS returns the greatest resident memory of this process so far, from /proc if there
// is one: that of getrusage includes the parent's pages before exec.
func peakRSS(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, os.ErrNotExist) {
		_, peak := usedSoFar(t)
		return peak
	}
	_, line, found := strings.Cut(string(text), "VmHWM:")
	if fields := strings.Fields(line); found && len(fields) > 0 {
		if kB, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			return kB * 1024
		}
	}
	t.Fatalf("read VmHWM in /proc/self/status: %v", err)
	return 0
}
