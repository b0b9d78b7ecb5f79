// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/cputime"
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
		{"apply again", func(s *simulate.Server, n int64) int {
			return directly(s, "PATCH", fmt.Sprintf("%s/u%d?fieldManager=m&force=true", mapsPath, n%100), "application/apply-patch+yaml", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u%d"},"data":{"v":"-"}}`, n%100)).Code
		}},
		{"apply of a Deployment", func(s *simulate.Server, n int64) int {
			return directly(s, "PATCH", fmt.Sprintf("/apis/apps/v1/namespaces/default/deployments/u%d?fieldManager=m&force=true", n%100), "application/apply-patch+yaml", fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"u%d"},"spec":{"replicas":%d,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i:%d","ports":[{"containerPort":80}],"env":[{"name":"A","value":"%d"}]}]}}}}`, n%100, n%5, n, n)).Code
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
			for n := range 100 {
				directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"u%d"},"data":{"v":"-"}}`, n))
			}
			begin := cputime.Used()
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

// BenchmarkLoopback_Write is one write as programs and kubectl send it: by clients
// of the kubeconfig, over TLS and HTTP/2, each with a connection of its own. The
// clients' work is in it.
func BenchmarkLoopback_Write(b *testing.B) {
	var n atomic.Int64
	for _, c := range []struct {
		name string
		do   func(context.Context, typedcorev1.ConfigMapInterface, int64) error
	}{
		{"create", func(ctx context.Context, maps typedcorev1.ConfigMapInterface, n int64) error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", n)}, Data: map[string]string{"v": "1"}}, metav1.CreateOptions{})
			return err
		}},
		{"apply", func(ctx context.Context, maps typedcorev1.ConfigMapInterface, n int64) error {
			wish := applycorev1.ConfigMap(fmt.Sprintf("u%d", n%100), "default").WithData(map[string]string{"v": fmt.Sprint(n)})
			_, err := maps.Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "m", Force: true})
			return err
		}},
	} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s, %d clients", c.name, clients), func(b *testing.B) {
				l, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
				if err != nil {
					b.Fatal(err)
				}
				ctx, stop := context.WithCancel(b.Context())
				ended := make(chan error, 1)
				go func() { ended <- l.Run(ctx) }()
				defer func() {
					stop()
					<-ended
				}()
				all := make([]typedcorev1.ConfigMapInterface, clients)
				for i := range all {
					all[i] = mapsOf(b, l.Kubeconfig())
					if err := c.do(ctx, all[i], n.Add(1)); err != nil {
						b.Fatal(err)
					}
				}
				b.ResetTimer()
				begin, left := cputime.Used(), int64(b.N)
				var writers sync.WaitGroup
				for _, maps := range all {
					writers.Go(func() {
						for atomic.AddInt64(&left, -1) >= 0 {
							if err := c.do(ctx, maps, n.Add(1)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				writers.Wait()
				reportCPU(b, begin)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

// mapsOf is a client of the ConfigMaps of a kubeconfig's server, with a connection
// of its own.
func mapsOf(b *testing.B, kubeconfig []byte) typedcorev1.ConfigMapInterface {
	b.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	cfg.QPS, cfg.Dial = -1, (&net.Dialer{}).DialContext // a dialer's connections are its own
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return clients.CoreV1().ConfigMaps("default")
}

// lines is an answer of which only the lines are counted; full is closed when
// there are enough.
type lines struct {
	discard
	want int
	full chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	if l.want > 0 {
		if l.want -= bytes.Count(p, []byte("\n")); l.want <= 0 {
			close(l.full)
		}
	}
	return len(p), nil
}

// heap is how much memory is in use, in MiB.
func heap() float64 {
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	return float64(now.HeapAlloc) / (1 << 20)
}

// BenchmarkServer_Hold is what a server with 100,000 ConfigMaps of 2 KiB takes,
// as they are, after they were listed in pages, and with a watch that was told
// of all of them.
func BenchmarkServer_Hold(b *testing.B) {
	const count = 100_000
	value := strings.Repeat("x", 2048)
	for b.Loop() {
		before := heap()
		s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
		for n := range count {
			if answer := directly(s, "POST", mapsPath, "application/json", fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"v":%q}}`, n, value)); answer.Code != http.StatusCreated {
				b.Fatal(answer.Code, answer.Body)
			}
		}
		b.ReportMetric(heap()-before, "MiB")
		for token, listed := "", 0; listed == 0 || token != ""; listed++ {
			var page struct {
				Metadata struct{ Continue string }
			}
			answer := directly(s, "GET", mapsPath+"?limit=500&continue="+token, "", "")
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != http.StatusOK {
				b.Fatal(answer.Code, err)
			}
			token = page.Metadata.Continue
		}
		b.ReportMetric(heap()-before, "listed-MiB")
		watched(b, s, count)
		b.ReportMetric(heap()-before, "watched-MiB")
		runtime.KeepAlive(s)
	}
}

// watched opens a watch for as long as b runs, and waits until it was told of
// all ConfigMaps.
func watched(b *testing.B, s *simulate.Server, count int) {
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan struct{})
	told := &lines{discard: discard{header: http.Header{}}, want: count, full: make(chan struct{})}
	req := httptest.NewRequest(http.MethodGet, "http://simulated"+mapsPath+"?watch=true", nil).WithContext(ctx)
	go func() {
		defer close(ended)
		s.ServeHTTP(told, req)
	}()
	b.Cleanup(func() {
		stop()
		<-ended
	})
	<-told.full
}
