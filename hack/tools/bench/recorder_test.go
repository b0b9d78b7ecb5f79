// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/cputime"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const (
	recorderSide   = "FLYBALL_BENCH_RECORDER"        // set: this process is measured; omitted or sent
	recorderRounds = "FLYBALL_BENCH_RECORDER_ROUNDS" // of each side; 10 by default
	recorderKeys   = 1000
)

// BenchmarkRecorder measures the processor time of a reconcile that applies one unchanged child, in
// a process of its own, without and with the record of past runs, in turns of 5,000 reconciles:
// with a ChildSet, which omits the apply, and with one that is sent; and then while a recording for
// a replay is made. It reports the medians, and the median of the ratios of neighbouring turns.
func BenchmarkRecorder(b *testing.B) {
	kubeconfig := operatorServer(b, fmt.Sprintf("ConfigMap=%d", recorderKeys), nil)
	for _, side := range []string{"omitted", "sent"} {
		b.Run(side, func(b *testing.B) {
			var out recorderResult
			for b.Loop() {
				childResult(b, side, "^TestRecorderChild$", []string{recorderSide + "=" + side, childConfig + "=" + kubeconfig}, &out)
			}
			ratios := make([]float64, 0, len(out.On))
			for i, on := range out.On {
				ratios = append(ratios, on/out.Off[i])
			}
			b.ReportMetric(middle(out.Off), "off-cpu-ns/run")
			b.ReportMetric(middle(out.On), "on-cpu-ns/run")
			b.ReportMetric(100*(middle(ratios)-1), "percent")
			for i, written := range out.Written {
				ratios[i] = written / out.On[i]
			}
			b.ReportMetric(100*(middle(ratios)-1), "recording-percent")
			b.ReportMetric(middle(out.OffAllocs), "off-allocs/run")
			b.ReportMetric(middle(out.OnAllocs), "on-allocs/run")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// recorderResult has a value per round.
type recorderResult struct{ Off, On, Written, OffAllocs, OnAllocs []float64 }

func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// TestRecorderChild is the measured process; by itself it does nothing.
func TestRecorderChild(t *testing.T) {
	side := os.Getenv(recorderSide)
	if side == "" {
		t.Skip("it is a part of BenchmarkRecorder")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(manager.Options{
		Config: cfg, MetricsAddress: "127.0.0.1:0", HealthAddress: "0", Logger: logr.Discard(), Client: client.Options{FieldOwner: "bench"},
	})
	if err != nil {
		t.Fatal(err)
	}
	off, on := newRecorded(t, mgr, side, -1), newRecorded(t, mgr, side, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	if _, err := mgr.Informers().WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	off.round(t, 1) // makes the children
	on.round(t, 9)  // fills the record
	off.round(t, 9)
	var out recorderResult
	rounds := 10
	if n, err := strconv.Atoi(os.Getenv(recorderRounds)); err == nil {
		rounds = n
	}
	for range rounds {
		cpu, allocs := off.round(t, 5)
		out.Off, out.OffAllocs = append(out.Off, cpu), append(out.OffAllocs, allocs)
		cpu, allocs = on.round(t, 5)
		out.On, out.OnAllocs = append(out.On, cpu), append(out.OnAllocs, allocs)
		stop := recordingOf(t, mgr.MetricsAddr())
		cpu, _ = on.round(t, 5)
		stop()
		out.Written = append(out.Written, cpu)
	}
	if n := on.c.RecordedKeys(reconcile.KeysQuery{}).Recorded; n == 0 {
		t.Fatal("nothing was recorded")
	}
	text, _ := json.Marshal(out)
	fmt.Printf("RESULT %s\n", text)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// recordingOf makes a recording until stop is called.
func recordingOf(t *testing.T, address string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/flyball/v1/recording?seconds=600", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("make a recording: %v %v", resp, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, resp.Body) // until it is cancelled
	}()
	return func() {
		cancel()
		<-read
		_ = resp.Body.Close()
		for { // until the program has noticed
			again, err := http.Get("http://" + address + "/debug/flyball/v1/recording?seconds=1")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, again.Body)
			_ = again.Body.Close()
			if again.StatusCode == http.StatusOK {
				return
			}
		}
	}
}

// recordedController reconciles the keys that it is fed.
type recordedController struct {
	c    *reconcile.Controller[reconcile.Key]
	fed  chan reconcile.Key
	done sync.WaitGroup
}

func newRecorded(t *testing.T, mgr *manager.Manager, side string, runs int) *recordedController {
	t.Helper()
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{reconcile.Children(deployments)}, reconcile.ChildSetOptions{FieldOwner: "bench"})
	r := &recordedController{fed: make(chan reconcile.Key, recorderKeys)}
	r.c = reconcile.New(fmt.Sprint("recorded ", runs), func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		defer r.done.Done()
		site, err := maps.Lister().Get(key)
		if err != nil {
			t.Error(err)
			return reconcile.Result{}, nil
		}
		child := childOf(site)
		if side == "sent" {
			err = mgr.Client().Apply(ctx, child, client.Force{})
		} else {
			_, err = children.Apply(ctx, site, child)
		}
		if err != nil {
			t.Error(err)
		}
		return reconcile.Result{}, nil
	}, reconcile.Options{RecordRuns: runs})
	r.c.Watch(source.Channel(r.fed, source.ChannelOptions{}))
	if err := mgr.Add(r.c); err != nil {
		t.Fatal(err)
	}
	return r
}

func childOf(site kube.Object) *appsv1.Deployment {
	labels := map[string]string{"app": site.GetName()}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.GetNamespace(), Name: site.GetName(), Labels: labels}}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}
	return d
}

// round reconciles each key some times, and returns the processor time and the allocations per
// reconcile.
func (r *recordedController) round(t *testing.T, times int) (cpu, allocs float64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cputime.Used()
	for range times {
		r.done.Add(recorderKeys)
		for n := range recorderKeys {
			r.fed <- reconcile.Key{Namespace: "shop", Name: fmt.Sprint("app-", n)}
		}
		r.done.Wait()
	}
	time.Sleep(time.Millisecond) // the last reconciles end
	used := cputime.Used() - start
	runtime.ReadMemStats(&after)
	n := float64(times * recorderKeys)
	return float64(used.Nanoseconds()) / n, float64(after.Mallocs-before.Mallocs) / n
}
