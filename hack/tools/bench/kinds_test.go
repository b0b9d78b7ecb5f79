// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
)

const (
	kindsSide = "FLYBALL_BENCH_KINDS" // set: this process is the measured one, with that side's informers
	fewOfEach = "Pod=200 Deployment=50 Node=20 ConfigMap=100 Secret=50 Service=50 EndpointSlice=50 Event=200"
	manyKinds = 61
	kindsIdle = 20 * time.Second
)

// kindsRun is what one process needed.
type kindsRun struct {
	StartCPU, IdleCPU     time.Duration
	Peak, Steady, Anon    int64
	Heap, Stacks, Runtime int64
	Goroutines            int
	Start                 time.Duration
}

// BenchmarkInformer_Kinds starts informers of 61 kinds with few objects, each with a handler, in a
// process of its own, and leaves them idle for 20 seconds. The server is a simulated one.
func BenchmarkInformer_Kinds(b *testing.B) {
	kubeconfig := operatorServer(b, fewOfEach, nil)
	for _, side := range []string{"flyball-clientgo", "client-go"} {
		b.Run(side, func(b *testing.B) {
			var runs []kindsRun
			for b.Loop() {
				var run kindsRun
				childResult(b, side, "^TestInformer_KindsChild$", []string{kindsSide + "=" + side, childConfig + "=" + kubeconfig}, &run)
				runs = append(runs, run)
			}
			for unit, of := range map[string]func(kindsRun) float64{
				"start-cpu-ms":  func(r kindsRun) float64 { return r.StartCPU.Seconds() * 1e3 },
				"start-ms":      func(r kindsRun) float64 { return r.Start.Seconds() * 1e3 },
				"idle-cpu-ms":   func(r kindsRun) float64 { return r.IdleCPU.Seconds() * 1e3 },
				"peak-RSS-MB":   func(r kindsRun) float64 { return float64(r.Peak) / 1e6 },
				"steady-RSS-MB": func(r kindsRun) float64 { return float64(r.Steady) / 1e6 },
				"anon-MB":       func(r kindsRun) float64 { return float64(r.Anon) / 1e6 },
				"heap-MB":       func(r kindsRun) float64 { return float64(r.Heap) / 1e6 },
				"stacks-MB":     func(r kindsRun) float64 { return float64(r.Stacks) / 1e6 },
				"runtime-MB":    func(r kindsRun) float64 { return float64(r.Runtime) / 1e6 },
				"goroutines":    func(r kindsRun) float64 { return float64(r.Goroutines) },
			} {
				values := make([]float64, 0, len(runs))
				for _, r := range runs {
					values = append(values, of(r))
				}
				slices.Sort(values)
				b.ReportMetric(values[len(values)/2], unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestInformer_KindsChild is the measured process; by itself it does nothing.
func TestInformer_KindsChild(t *testing.T) {
	side := os.Getenv(kindsSide)
	if side == "" {
		t.Skip("it is a part of BenchmarkInformer_Kinds")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.ContentType, cfg.AcceptContentTypes = -1, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resources := watchable(t, clients)
	var run kindsRun
	before, _ := usedSoFar(t)
	begin := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	synced, stop := startKinds(ctx, t, side, cfg, clients, resources)
	for _, done := range synced {
		<-done
	}
	run.Start = time.Since(begin)
	used, _ := usedSoFar(t)
	run.StartCPU = used - before
	time.Sleep(kindsIdle)
	idle, _ := usedSoFar(t)
	run.IdleCPU, run.Peak, run.Goroutines = idle-used, peakRSS(t), runtime.NumGoroutine()
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	run.Steady, run.Anon, run.Heap = residentNow(t), anonymousNow(t), int64(stats.HeapAlloc)
	run.Stacks, run.Runtime = int64(stats.StackInuse), int64(stats.GCSys+stats.OtherSys+stats.MSpanSys+stats.BuckHashSys)
	if file := os.Getenv("FLYBALL_BENCH_PROFILE"); file != "" {
		out, err := os.Create(file + "-" + side)
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(out, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, _ := json.Marshal(run)
	fmt.Printf("RESULT %s\n", out)
	cancel()
	stop()
}

// watchable returns the first built-in resources that each side has informers of.
func watchable(t *testing.T, clients *kubernetes.Clientset) (out []schema.GroupVersionResource) {
	lists, err := discovery.ServerPreferredResources(clients.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	theirs := informers.NewSharedInformerFactory(clients, 0)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			of := gv.WithResource(r.Name)
			if _, err := theirs.ForResource(of); err == nil && slices.Contains(r.Verbs, "watch") && scheme.Scheme.Recognizes(gv.WithKind(r.Kind)) {
				out = append(out, of)
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	few := []string{"pods", "deployments", "nodes", "configmaps", "secrets", "services", "endpointslices", "events"}
	slices.SortStableFunc(out, func(a, b schema.GroupVersionResource) int { // those with objects first
		return slices.Index(append(few, a.Resource), a.Resource) - slices.Index(append(few, b.Resource), b.Resource)
	})
	return out[:min(manyKinds, len(out))]
}

func startKinds(ctx context.Context, t *testing.T, side string, cfg *rest.Config, clients kubernetes.Interface, resources []schema.GroupVersionResource) (synced []<-chan struct{}, stop func()) {
	theirs := informers.NewSharedInformerFactory(clients, 0)
	run, wait := func() { theirs.StartWithContext(ctx) }, func() { theirs.Shutdown() }
	if side != "client-go" {
		ours, err := informer.NewSharedInformerFactory(cfg, scheme.Scheme, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		theirs = factory.New(ours, factory.Options{Client: clients})
		ended := make(chan error, 1)
		run, wait = func() {
			go func() { ended <- ours.Run(ctx) }()
			theirs.Start(ctx.Done())
		}, func() { <-ended }
	}
	for _, r := range resources {
		i, err := theirs.ForResource(r)
		if err != nil {
			t.Fatal(err)
		}
		handle, err := i.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
		if err != nil {
			t.Fatal(err)
		}
		synced = append(synced, handle.HasSyncedChecker().Done())
	}
	run()
	return synced, wait
}

// anonymousNow returns the resident memory that is of no file.
func anonymousNow(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kB int64
	_, line, _ := strings.Cut(string(text), "RssAnon:")
	if _, err := fmt.Sscan(line, &kB); err != nil {
		t.Fatal(err)
	}
	return kB * 1024
}
