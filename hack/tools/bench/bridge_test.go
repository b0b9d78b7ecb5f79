// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/envtest"
	pagev1 "github.com/flyball-dev/flyball/examples/controllerruntime/api/v1"
)

const (
	bridgePages = 20_000
	bridgeSide  = "FLYBALL_BENCH_BRIDGE" // set: this process is the measured operator, on that side
	bridgeWork  = "FLYBALL_BENCH_WORK"   // set: it ends when all pages are settled, else when each was reconciled
)

// bridgeSides are the same operator without and with the line.
var bridgeSides = []string{"controller-runtime", "bridge"}

// BenchmarkBridge measures one operator of controller-runtime in a process of its own, with
// and without bridge.Options. Each side has a real server of its own with 20,000 objects of
// a custom kind. The operator makes a ConfigMap for each and reports it in the status: the
// run "work" lasts until all is settled. The run "start" begins with the settled state and
// lasts until each object was reconciled; then it measures reads.
func BenchmarkBridge(b *testing.B) {
	for _, side := range bridgeSides {
		b.Run(side, func(b *testing.B) {
			kubeconfig := bridgeServer(b)
			work := runOperator(b, side, kubeconfig, true)
			b.Run("work", func(b *testing.B) {
				for b.Loop() { // the work is done once
				}
				work.report(b, 1)
				b.ReportMetric(float64(work.Writes)/bridgePages, "writes/object")
				b.ReportMetric(float64(work.Conflicts), "conflicts")
				b.ReportMetric(float64(work.Requests), "requests")
			})
			b.Run("start", func(b *testing.B) {
				var last operatorRun
				var total operatorRun
				for b.Loop() {
					last = runOperator(b, side, kubeconfig, false)
					total.Wall += last.Wall
					total.CPU += last.CPU
					total.PeakRSS = max(total.PeakRSS, last.PeakRSS)
				}
				total.report(b, float64(b.N))
				b.ReportMetric(float64(last.SteadyHeap)/1e6, "heap-MB")
				b.ReportMetric(float64(last.SteadyRSS)/1e6, "steady-RSS-MB")
				b.ReportMetric(float64(last.Requests), "requests")
				for name, took := range last.Reads {
					b.ReportMetric(float64(took.Nanoseconds()), name)
				}
			})
		})
	}
}

type operatorRun struct {
	Wall, CPU                   time.Duration
	PeakRSS, SteadyRSS          int64
	SteadyHeap                  uint64
	Requests, Writes, Conflicts int64
	Reads                       map[string]time.Duration // by unit
}

func (r operatorRun) report(b *testing.B, n float64) {
	b.ReportMetric(r.CPU.Seconds()/n, "cpu-s")
	b.ReportMetric(r.Wall.Seconds()/n, "wall-s")
	b.ReportMetric(float64(r.PeakRSS)/1e6, "peak-RSS-MB")
	b.ReportMetric(0, "ns/op")
}

// bridgeServer starts a control plane with the pages; it ends with the benchmark.
func bridgeServer(b *testing.B) (kubeconfig string) {
	ctrl.SetLogger(logr.Discard())
	env, err := envtest.Start(b.Context(), envtest.Options{CRDs: []string{filepath.Join("..", "..", "..", "examples", "controllerruntime", "config")}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { env.Stop() })
	api, err := client.New(env.Config(), client.Options{Scheme: bridgeScheme()})
	if err != nil {
		b.Fatal(err)
	}
	loadAll(b, bridgePages, func(n int64) error {
		return api.Create(b.Context(), &pagev1.Page{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("page-%06d", n), Labels: map[string]string{"site": fmt.Sprint("site-", n%50)}},
			Spec:       pagev1.PageSpec{Content: strings.Repeat(fmt.Sprintf("<p>line %d</p>\n", n), 40), Replicas: 1},
		})
	})
	return env.Kubeconfig()
}

// runOperator runs the operator in a process of its own.
func runOperator(b *testing.B, side, kubeconfig string, work bool) (run operatorRun) {
	env := []string{bridgeSide + "=" + side, childConfig + "=" + kubeconfig}
	if work {
		env = append(env, bridgeWork+"=1")
	}
	childResult(b, side, "^TestBridgeChild$", env, &run)
	return run
}

// TestBridgeChild is the measured process; by itself it does nothing.
func TestBridgeChild(t *testing.T) {
	side := os.Getenv(bridgeSide)
	if side == "" {
		t.Skip("it is a part of BenchmarkBridge")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	sent := &requests{}
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { sent.next = next; return sent })
	opts := ctrl.Options{Scheme: bridgeScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"}
	if side == "bridge" {
		opts = bridge.Options(opts)
	}
	ctrl.SetLogger(logr.Discard())
	begin := time.Now()
	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	p := &pages{Client: mgr.GetClient(), work: os.Getenv(bridgeWork) != "", settled: map[string]bool{}, done: make(chan time.Time, 1)}
	err = ctrl.NewControllerManagedBy(mgr).For(&pagev1.Page{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var run operatorRun
	select {
	case at := <-p.done:
		run.Wall = at.Sub(begin)
	case err := <-ended:
		t.Fatalf("the operator ended before its work did: %v", err)
	}
	if p.work {
		time.Sleep(2 * time.Second) // what its last writes lead to
	}
	run.CPU, run.PeakRSS = usedSoFar(t)
	run.Requests, run.Writes, run.Conflicts = sent.all.Load(), sent.writes.Load(), sent.conflicts.Load()
	if !p.work {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		run.SteadyHeap, run.SteadyRSS = stats.HeapAlloc, residentNow(t)
		run.Reads = timeReads(ctx, t, mgr.GetClient())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out, _ := json.Marshal(run)
	fmt.Printf("RESULT %s\n", out)
}

// pages is the operator.
type pages struct {
	client.Client
	work bool
	done chan time.Time

	mu      sync.Mutex
	settled map[string]bool
}

// Reconcile makes the page's ConfigMap, and then says so in its status.
func (p *pages) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var page pagev1.Page
	if err := p.Get(ctx, req.NamespacedName, &page); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var content corev1.ConfigMap
	err := p.Get(ctx, req.NamespacedName, &content)
	switch {
	case apierrors.IsNotFound(err):
		content.ObjectMeta = metav1.ObjectMeta{Namespace: page.Namespace, Name: page.Name}
		content.Data = map[string]string{"index.html": page.Spec.Content}
		if err := controllerutil.SetControllerReference(&page, &content, p.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := p.Create(ctx, &content); err != nil {
			return ctrl.Result{}, err
		}
	case err != nil:
		return ctrl.Result{}, err
	}
	if !meta.IsStatusConditionTrue(page.Status.Conditions, "Ready") {
		page.Status.ObservedGeneration = page.Generation
		meta.SetStatusCondition(&page.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Stored"})
		if err := p.Status().Update(ctx, &page); err != nil {
			return ctrl.Result{}, err
		}
	}
	p.settle(page.Name)
	return ctrl.Result{}, nil
}

func (p *pages) settle(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled[name] = true; len(p.settled) == bridgePages && p.done != nil {
		p.done <- time.Now()
		p.done = nil
	}
}

// requests counts what is sent.
type requests struct {
	next                   http.RoundTripper
	all, writes, conflicts atomic.Int64
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.all.Add(1)
	if req.Method != http.MethodGet {
		r.writes.Add(1)
	}
	resp, err := r.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusConflict {
		r.conflicts.Add(1)
	}
	return resp, err
}

// timeReads returns how long reads of the cache take.
func timeReads(ctx context.Context, t *testing.T, cl client.Client) map[string]time.Duration {
	key := client.ObjectKey{Namespace: "default", Name: "page-000042"}
	out := map[string]time.Duration{}
	for unit, read := range map[string]func() error{
		"Get-ns": func() error { return cl.Get(ctx, key, &pagev1.Page{}) },
		"Get-shared-ns": func() error {
			return cl.Get(ctx, key, &pagev1.Page{}, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
		},
		"List20k-ns": func() error { return cl.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")) },
		"List20k-shared-ns": func() error {
			return cl.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), client.UnsafeDisableDeepCopy)
		},
	} {
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
		if result.N == 0 {
			t.Fatalf("%s: the read failed", unit)
		}
		out[unit] = time.Duration(result.NsPerOp())
	}
	return out
}

func usedSoFar(t *testing.T) (cpu time.Duration, peakRSS int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), usage.Maxrss * 1024
}

// residentNow returns the resident memory of this process, 0 where there is no /proc.
func residentNow(t *testing.T) int64 { return residentOf(t, os.Getpid()) }

// residentOf returns the resident memory of a process, 0 where there is no /proc and after its end.
func residentOf(t *testing.T, pid int) int64 {
	file := fmt.Sprintf("/proc/%d/statm", pid)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0
	}
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		t.Fatalf("read %s: %q, %v", file, text, err)
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}

func bridgeScheme() *k8sruntime.Scheme {
	s := k8sruntime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), pagev1.AddToScheme(s)); err != nil {
		panic(err) // a kind is registered twice
	}
	return s
}
