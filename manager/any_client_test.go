// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

// ledger notes the names of the objects whose writes it is told.
type ledger struct {
	mu    sync.Mutex
	names []string
}

func (l *ledger) Observe(w kube.Written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, w.Key.Name)
}

func (l *ledger) WhenPassed(schema.GroupVersionKind, kube.Key, kube.Version, func()) func() {
	return func() {}
}

// take returns the names since the last call.
func (l *ledger) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = nil
	return names
}

func inShop() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}}
}

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// A write is reported once by each client, and one that the gate refuses by none.
func TestConfig_WritesOfAnyClientAreReported_M12(t *testing.T) {
	create := func(t *testing.T, cfg *rest.Config) error {
		api, err := kubernetes.NewForConfig(cfg)
		must(t, err)
		_, err = api.CoreV1().ConfigMaps("shop").Create(t.Context(), inShop(), metav1.CreateOptions{})
		return err
	}
	ours := func(t *testing.T, cfg *rest.Config, observer client.Observer) error {
		c, err := client.New(cfg, clientscheme.Scheme, client.Options{Observer: observer})
		must(t, err)
		return c.Create(t.Context(), inShop())
	}
	for _, row := range []struct {
		name  string
		write func(t *testing.T, m *manager.Manager, l *ledger) error
		led   bool // guarded by leader election
	}{
		{"clientset of Config", func(t *testing.T, m *manager.Manager, _ *ledger) error { return create(t, m.Config()) }, true},
		{"clientset of a copy", func(t *testing.T, m *manager.Manager, _ *ledger) error {
			cfg := rest.CopyConfig(m.Config())
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return next })
			cfg.UserAgent, cfg.Impersonate.UserName = "x", "y"
			return create(t, cfg)
		}, true},
		{"clientset of StandbyConfig", func(t *testing.T, m *manager.Manager, _ *ledger) error { return create(t, m.StandbyConfig()) }, false},
		{"another client of ours", func(t *testing.T, m *manager.Manager, _ *ledger) error { return ours(t, m.StandbyConfig(), nil) }, false},
		{"another client of ours, with the Observer", func(t *testing.T, m *manager.Manager, l *ledger) error { return ours(t, m.StandbyConfig(), l) }, false},
		{"Client", func(t *testing.T, m *manager.Manager, _ *ledger) error {
			return m.Client().Create(t.Context(), inShop())
		}, true},
		{"StandbyClient", func(t *testing.T, m *manager.Manager, _ *ledger) error {
			return m.StandbyClient().Create(t.Context(), inShop())
		}, false},
	} {
		for _, election := range []*manager.LeaderElection{nil, {ID: "website", Namespace: "ops"}} {
			t.Run(row.name, func(t *testing.T) {
				sent := 0
				server := answering(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodGet {
						return reply(http.StatusOK, &metav1.APIResourceList{
							TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
							APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}},
						}), nil
					}
					sent++
					return reply(http.StatusCreated, &corev1.ConfigMap{
						TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
						ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", ResourceVersion: "9", UID: "x"},
					}), nil
				})
				l := &ledger{}
				m := newManager(t, manager.Options{
					Config:         &rest.Config{Host: "http://server", Transport: server},
					Client:         client.Options{Observer: l},
					LeaderElection: election,
				})
				informer.For[*corev1.ConfigMap](m.Informers())
				err := row.write(t, m, l)
				want := []string{"x"}
				if refused := election != nil && row.led; refused {
					want = nil
					if err == nil || sent > 0 {
						t.Errorf("a write without the lease: %v, %d requests", err, sent)
					}
				} else if err != nil {
					t.Fatal(err)
				}
				if got := l.take(); !slices.Equal(got, want) {
					t.Errorf("reported %q, want %q", got, want)
				}
			})
		}
	}
}
