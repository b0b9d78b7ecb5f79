// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const (
	coldObjects = 20_000
	childPeer   = "FLYBALL_BENCH_PEER"       // set: this process is a measured controller
	childConfig = "FLYBALL_BENCH_KUBECONFIG" // the server it runs against
)

// BenchmarkColdStart measures a whole controller process, from its start until each of
// 20,000 ConfigMaps on a real server has been reconciled by a function that reads the
// object and does nothing. Each run is a separate process, so none inherits a warm heap;
// the processor time is the controller's alone.
func BenchmarkColdStart(b *testing.B) {
	kubeconfig := coldServer(b)
	for _, peer := range []string{"flyball", "controller-runtime"} {
		b.Run(peer, func(b *testing.B) {
			var total coldRun
			for b.Loop() {
				run := runChild(b, peer, kubeconfig)
				total.Wall += run.Wall
				total.CPU += run.CPU
				total.PeakRSS = max(total.PeakRSS, run.PeakRSS)
			}
			n := float64(b.N)
			b.ReportMetric(total.CPU.Seconds()/n, "cpu-s")
			b.ReportMetric(total.Wall.Seconds()/n, "wall-s")
			b.ReportMetric(float64(total.PeakRSS)/1e6, "peak-RSS-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

type coldRun struct {
	Wall, CPU time.Duration
	PeakRSS   int64
}

// coldServer starts a control plane with the objects; it ends with the benchmark.
func coldServer(b *testing.B) (kubeconfig string) {
	env, err := envtest.Start(b.Context(), envtest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { env.Stop() })
	api := kubernetes.NewForConfigOrDie(env.Config())
	loadAll(b, coldObjects, func(n int64) error {
		_, err := api.CoreV1().ConfigMaps("default").Create(b.Context(), coldObject(n), metav1.CreateOptions{})
		return err
	})
	return env.Kubeconfig()
}

// loadAll calls create for 1 to n, eight at a time.
func loadAll(b *testing.B, n int64, create func(n int64) error) {
	var next atomic.Int64
	var loaders sync.WaitGroup
	for range 8 {
		loaders.Go(func() {
			for i := next.Add(1); i <= n && !b.Failed(); i = next.Add(1) {
				if err := create(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	loaders.Wait()
}

func coldObject(n int64) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("cm-%06d", n),
			Labels: map[string]string{"app": fmt.Sprintf("app-%d", n%50), "tier": "backend"},
		},
		Data: map[string]string{"config.yaml": strings.Repeat(fmt.Sprintf("key-%d: value\n", n), 40)},
	}
}

// runChild runs one controller in a separate process.
func runChild(b *testing.B, peer, kubeconfig string) (run coldRun) {
	childResult(b, peer, "^TestColdStartChild$", []string{childPeer + "=" + peer, childConfig + "=" + kubeconfig}, &run)
	return run
}

// childResult runs a test in a separate process, and decodes its result.
func childResult(b *testing.B, peer, test string, env []string, result any) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run="+test, "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", peer, err, out)
	}
	_, text, found := strings.Cut(string(out), "RESULT ")
	if err := json.NewDecoder(strings.NewReader(text)).Decode(result); !found || err != nil {
		b.Fatalf("%s: no result (%v) in:\n%s", peer, err, out)
	}
}

// TestColdStartChild is the measured process; by itself it does nothing.
func TestColdStartChild(t *testing.T) {
	peer := os.Getenv(childPeer)
	if peer == "" {
		t.Skip("it is a part of BenchmarkColdStart")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	begin := time.Now()
	var seen tally
	seen.all = cancel
	run := map[string]func(context.Context, *rest.Config, *tally) error{
		"flyball": runFlyball, "controller-runtime": runControllerRuntime,
	}[peer]
	if err := run(ctx, cfg, &seen); err != nil {
		t.Fatal(err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("%d of %d reconciled in time", seen.done.Load(), coldObjects)
	}
	result := coldRun{Wall: seen.at.Sub(begin)}
	result.CPU, result.PeakRSS = usedSoFar(t)
	out, _ := json.Marshal(result)
	fmt.Printf("RESULT %s\n", out)
}

// tally ends the run when the last object of default has been reconciled.
type tally struct {
	done atomic.Int64
	at   time.Time
	all  func()
}

func (c *tally) reconciled(namespace, name string) {
	if namespace == "default" && strings.HasPrefix(name, "cm-") && c.done.Add(1) == coldObjects {
		c.at = time.Now()
		c.all()
	}
}

func runFlyball(ctx context.Context, cfg *rest.Config, seen *tally) error {
	mgr, err := manager.New(manager.Options{Config: cfg, MetricsAddress: "0", HealthAddress: "0", Logger: logr.Discard()})
	if err != nil {
		return err
	}
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	lister := maps.Lister()
	c := reconcile.New("configmaps", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if _, err := lister.Get(key); err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		seen.reconciled(key.Namespace, key.Name)
		return reconcile.Result{}, nil
	}, reconcile.Options{Workers: 1})
	c.Watch(source.Kind(maps, source.Self))
	if err := mgr.Add(c); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

func runControllerRuntime(ctx context.Context, cfg *rest.Config, seen *tally) error {
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		return err
	}
	client := mgr.GetClient()
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(ctrlreconcile.Func(
		func(ctx context.Context, req ctrlreconcile.Request) (ctrlreconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := client.Get(ctx, req.NamespacedName, &cm); err != nil {
				if apierrors.IsNotFound(err) {
					err = nil
				}
				return ctrlreconcile.Result{}, err
			}
			seen.reconciled(req.Namespace, req.Name)
			return ctrlreconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
