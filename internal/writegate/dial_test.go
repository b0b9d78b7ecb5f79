// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// scribe is an API server that accepts each ConfigMap and records the requests.
type scribe struct {
	*httptest.Server
	mu struct {
		sync.Mutex
		reads, writes int
	}
}

func newScribe(t *testing.T, http2 bool) *scribe {
	s := &scribe{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if r.Method == http.MethodGet {
			s.mu.reads++
		} else {
			s.mu.writes++
		}
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "prod", "name": "web"},
		})
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *scribe) seen() (reads, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.reads, s.mu.writes
}

// Covers each way of changing a configuration before a client is created from it.
func TestConfig_NoCopyOfItWritesPastTheGate_M8(t *testing.T) {
	plain := func(rt http.RoundTripper) http.RoundTripper { return rt }
	for name, c := range map[string]struct {
		change func(*rest.Config) *rest.Config
		lost   bool
	}{
		"as it is":               {func(cfg *rest.Config) *rest.Config { return cfg }, false},
		"CopyConfig":             {rest.CopyConfig, false},
		"Wrap":                   {func(cfg *rest.Config) *rest.Config { cfg.Wrap(plain); return cfg }, false},
		"another timeout":        {func(cfg *rest.Config) *rest.Config { cfg.Timeout = time.Minute; return cfg }, false},
		"WrapTransport replaced": {func(cfg *rest.Config) *rest.Config { cfg.WrapTransport = plain; return cfg }, true},
		"WrapTransport removed":  {func(cfg *rest.Config) *rest.Config { cfg.WrapTransport = nil; return cfg }, true},
		"AnonymousClientConfig":  {rest.AnonymousClientConfig, true},
		"anonymous, then a token": {func(cfg *rest.Config) *rest.Config {
			cfg = rest.AnonymousClientConfig(cfg)
			cfg.BearerToken = "t"
			return rest.CopyConfig(cfg)
		}, true},
	} {
		for _, http2 := range []bool{false, true} {
			s := newScribe(t, http2)
			cfg := &rest.Config{Host: s.URL, BearerToken: "own"}
			cfg.Insecure = true
			gate := New(13500 * time.Millisecond)
			changed := c.change(rest.CopyConfig(gate.Given(cfg)))
			write, read := clients(t, changed)
			want := reconcile.ErrNotLeading
			if c.lost {
				want = ErrGateLost
			}
			for range 2 { // before and after it has led
				for how, err := range write(t.Context()) {
					if !errors.Is(err, want) {
						t.Errorf("%s (HTTP/2: %v): a write of the %s client: %v, want %v", name, http2, how, err, want)
					}
				}
				for how, err := range read(t.Context()) {
					if (err != nil) != c.lost {
						t.Errorf("%s (HTTP/2: %v): a read of the %s client: %v; want an error only where the gate is lost", name, http2, how, err)
					}
				}
				if _, writes := s.seen(); writes != 0 {
					t.Fatalf("%s (HTTP/2: %v): %d writes reached the server though this process does not lead", name, http2, writes)
				}
				gate.Open(gate.Now())
				for how, err := range write(t.Context()) {
					if (err != nil) != c.lost {
						t.Errorf("%s (HTTP/2: %v): a write of the %s client while this process leads: %v", name, http2, how, err)
					}
				}
				s.mu.Lock()
				s.mu.writes = 0
				s.mu.Unlock()
				gate.Shut("a test says so")
			}
			if reads, _ := s.seen(); (reads == 0) != c.lost {
				t.Errorf("%s (HTTP/2: %v): %d reads reached the server", name, http2, reads)
			}
		}
	}
}

// clients returns writes and reads with the usual kinds of clients.
func clients(t *testing.T, cfg *rest.Config) (write, read func(context.Context) map[string]error) {
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	maps := untyped.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("prod")
	write = func(ctx context.Context) map[string]error {
		all := map[string]error{}
		_, all["typed"] = typed.CoreV1().ConfigMaps("prod").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
		_, all["token"] = typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{})
		_, all["dynamic"] = maps.Update(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"},
		}}, metav1.UpdateOptions{})
		req, _ := http.NewRequestWithContext(ctx, http.MethodDelete, cfg.Host+"/api/v1/namespaces/prod/configmaps/web", nil)
		all["raw"] = end(raw.Do(req))
		return all
	}
	read = func(ctx context.Context) map[string]error {
		all := map[string]error{}
		_, all["typed"] = typed.CoreV1().ConfigMaps("prod").Get(ctx, "web", metav1.GetOptions{})
		_, all["dynamic"] = maps.Get(ctx, "web", metav1.GetOptions{})
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/api/v1/namespaces/prod/configmaps/web", nil)
		all["raw"] = end(raw.Do(req))
		return all
	}
	return write, read
}

func end(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
