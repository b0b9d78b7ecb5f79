// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// newAPI returns an API server that has one ConfigMap and silent watches.
func newAPI(t *testing.T) *rest.Config {
	t.Helper()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	one := newConfigMap("one")
	one.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: []string{"get", "list", "watch"}},
		}})
	})
	mux.HandleFunc("GET /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") == "" {
			answer(w, corev1.ConfigMapList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.ConfigMap{*one},
			})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /api/v1/namespaces/default/configmaps/one", func(w http.ResponseWriter, _ *http.Request) { answer(w, one) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// fetch sends a GET without keeping the connection.
func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

func TestManager_RunsAControllerAgainstAServer(t *testing.T) {
	m := newManager(t, manager.Options{
		Config:         newAPI(t),
		HealthAddress:  "127.0.0.1:0",
		MetricsAddress: "127.0.0.1:0",
		Informers:      informer.Options{PagedLists: true},
	})
	maps := informer.For[*corev1.ConfigMap](m.Informers())
	seen := make(chan string, 1)
	c := reconcile.New("copier", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		var live corev1.ConfigMap
		if err := m.Client().Get(ctx, key, &live); err != nil {
			return reconcile.Result{}, err
		}
		seen <- live.Name
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	c.Watch(source.Kind(maps, source.Self))
	must(t, m.Add(c))
	if m.HealthAddr() != "" || m.MetricsAddr() != "" {
		t.Errorf("addresses %q, %q before Run, want none: New opens no port", m.HealthAddr(), m.MetricsAddr())
	}

	stop, wait := run(t, m)
	if got := <-seen; got != "one" {
		t.Errorf("reconciled %q, want one", got)
	}
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		if code, text := fetch(t, "http://"+m.HealthAddr()+path); code != 200 || text != "ok" {
			t.Errorf("%s = %d %q, want 200 ok", path, code, text)
		}
	}
	_, text := fetch(t, "http://"+m.MetricsAddr()+"/metrics")
	host := strings.TrimPrefix(m.Config().Host, "http://")
	for _, want := range []string{
		`rest_client_requests_total{code="200",host="` + host + `",method="GET"} `,
		`flyball_informer_objects{kind="ConfigMap"} 1`,
		`workqueue_adds_total{controller="copier",name="copier"} 1`,
		`controller_runtime_max_concurrent_reconciles{controller="copier"} 4`,
		"go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("/metrics lacks %q:\n%s", want, text)
		}
	}
	stop()
	if err := wait(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if conn, err := net.Dial("tcp", m.HealthAddr()); err == nil {
		conn.Close()
		t.Error("the health server still answers after Run")
	}
}

func TestManager_TakenAddressIsAFaultThatNamesTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	m := newManager(t, manager.Options{MetricsAddress: taken.Addr().String()})
	began := false
	must(t, m.Add(manager.RunnableFunc(func(context.Context) error { began = true; return nil })))
	err = m.Run(t.Context())
	for _, want := range []string{"run metrics server: listen on", taken.Addr().String(), "-metrics-bind-address", "or 0 to serve none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want an error with %q", err, want)
		}
	}
	if began {
		t.Error("a controller ran, though the stage above had not started")
	}
}

type pipe struct{ conns chan net.Conn }

func (p pipe) Accept() (net.Conn, error) {
	conn, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipe) Close() error   { return nil }
func (p pipe) Addr() net.Addr { return &net.TCPAddr{} }

func TestServer_HalfSentRequestIsCutOff(t *testing.T) {
	for request, cutOff := range map[string]bool{
		"GET /nobody HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n":        true,
		"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n": true,
		"GET /livez/slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      false,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t, manager.Options{HealthAddress: ":0"})
			must(t, m.AddLiveCheck("slow", func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(30 * time.Second):
				}
				return ctx.Err()
			}))
			here, there := net.Pipe()
			p := pipe{make(chan net.Conn, 1)}
			p.conns <- there
			done := make(chan error, 1)
			go func() { done <- m.HealthServer().Serve(p) }()
			begun := time.Now()
			must(t, here.SetDeadline(begun.Add(time.Minute)))
			_, err := io.WriteString(here, request)
			must(t, err)
			text, err := io.ReadAll(here)
			took := time.Since(begun)
			if cutOff && (took < 10*time.Second || took > 11*time.Second) { // Go 1.27 lingers before it closes
				t.Errorf("%q: %q, %v after %v, want its end after ten seconds", request, text, err, took)
			}
			if !cutOff && (took != 30*time.Second || !strings.HasPrefix(string(text), "HTTP/1.1 200 ")) {
				t.Errorf("%q: %q, %v after %v, want 200 after 30 seconds", request, text, err, took)
			}
			here.Close()
			close(p.conns)
			<-done
		})
	}
}

// Each client that upgrades connections has its own transport.
func TestManager_TransportsAreNotKept(t *testing.T) {
	m := newManager(t, manager.Options{})
	before := m.Transports()
	for range 10 {
		if _, err := rest.HTTPWrappersForConfig(m.Config(), &http.Transport{}); err != nil {
			t.Fatal(err)
		}
		if _, err := rest.HTTPWrappersForConfig(m.Config(), roundTripper{}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	shared := &http.Transport{}
	for range 2 {
		if _, err := rest.HTTPWrappersForConfig(m.Config(), shared); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.Transports() - before; n != 1 {
		t.Errorf("%d transports are kept, want the one that is in use", n)
	}
	runtime.KeepAlive(shared)
}

// roundTripper keeps no connections.
type roundTripper struct{ http.RoundTripper }

func TestManager_ConnectionErrorsAreCounted(t *testing.T) {
	m := newManager(t, manager.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}})
	var obj corev1.ConfigMap
	if err := m.Client().Get(t.Context(), kube.Key{Namespace: "default", Name: "x"}, &obj); err == nil {
		t.Fatal("Get from nobody = nil")
	}
	families, err := m.Metrics().Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "rest_client_requests_total" && strings.Contains(f.String(), `"<error>"`) {
			return
		}
	}
	t.Errorf("rest_client_requests_total does not show the error: %v", families)
}
