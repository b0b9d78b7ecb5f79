// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// probed is a manager that keeps what is added to it.
type probed struct {
	ctrl.Manager
	cache       cache.Cache
	ready, live healthz.Checker
	added       manager.Runnable
	handlers    map[string]http.Handler
}

func (p *probed) GetCache() cache.Cache                             { return p.cache }
func (p *probed) GetConverterRegistry() conversion.Registry         { return conversion.NewRegistry() }
func (p *probed) Add(r manager.Runnable) error                      { p.added = r; return nil }
func (p *probed) AddReadyzCheck(_ string, c healthz.Checker) error  { p.ready = c; return nil }
func (p *probed) AddHealthzCheck(_ string, c healthz.Checker) error { p.live = c; return nil }
func (p *probed) AddMetricsServerExtraHandler(s string, h http.Handler) error {
	p.handlers = map[string]http.Handler{s: h}
	return nil
}

func ask(check healthz.Checker) string {
	err := check(httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func TestAddHealthz_ReadyOnceEachInformerHasSynced(t *testing.T) {
	simulated := simtest.New(t, nil)
	made, err := NewCache(simulated.Config, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mgr := &probed{cache: made}
	if err := AddHealthz(mgr); err != nil {
		t.Fatal(err)
	}
	if got := ask(mgr.ready); got != "ok" {
		t.Errorf("readiness without an informer: %s", got)
	}
	if _, err := made.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	if got := ask(mgr.ready); !strings.Contains(got, "informer/ConfigMap: not synced") {
		t.Errorf("readiness before the start: %s, want that ConfigMaps are not synced", got)
	}
	run(t, made)
	if got := ask(mgr.ready); got != "ok" {
		t.Errorf("readiness after the sync: %s", got)
	}
}

func TestAddHealthz_HandlerThatHangsIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil, configMap("default", "a", nil))
		made, err := NewCache(simulated.Config, cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		mgr := &probed{cache: made}
		if err := AddHealthz(mgr); err != nil {
			t.Fatal(err)
		}
		run(t, made)
		watching, stop := context.WithCancel(t.Context())
		watched := make(chan error, 1)
		go func() { watched <- mgr.added.Start(watching) }()
		i, err := made.GetInformer(t.Context(), &corev1.ConfigMap{})
		if err != nil {
			t.Fatal(err)
		}
		hang := make(chan struct{})
		if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-hang }}); err != nil {
			t.Fatal(err)
		}
		if _, err := simulated.Put(configMap("default", "b", nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := ask(mgr.live); got != "ok" {
			t.Errorf("liveness after a minute: %s, want patience", got)
		}
		time.Sleep(2 * time.Minute)
		if got := ask(mgr.live); !strings.Contains(got, "has not returned") || !strings.Contains(got, "informer/ConfigMap") {
			t.Errorf("liveness with a handler that hangs: %s", got)
		}
		close(hang)
		synctest.Wait()
		if got := ask(mgr.live); got != "ok" {
			t.Errorf("liveness after the handler has returned: %s", got)
		}
		stop()
		if err := <-watched; err != nil {
			t.Error(err)
		}
	})
}

func TestAddHealthz_AnotherCacheIsAnError(t *testing.T) {
	mgr, err := ctrl.NewManager(simtest.New(t, nil).Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"AddHealthz": AddHealthz(mgr), "AddSnapshot": AddSnapshot(mgr, "/x")} {
		if err == nil || !strings.Contains(err.Error(), "bridge.Options") {
			t.Errorf("%s of a manager with another cache: %v, want what to do", name, err)
		}
	}
}

func TestAddSnapshot_ServesStatesWithoutObjects(t *testing.T) {
	_, c, cl := started(t, cache.Options{}, configMap("default", "secretive", nil))
	if err := cl.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "secretive"}, &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	mgr := &probed{cache: c}
	if err := AddSnapshot(mgr, "/debug/informers"); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mgr.handlers["/debug/informers"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/informers", nil))
	var got struct{ Informers []state.Informer }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Informers) != 1 || got.Informers[0].Kind.Kind != "ConfigMap" || !got.Informers[0].Synced || got.Informers[0].Objects != 1 {
		t.Errorf("the snapshot is %s, want the informer of ConfigMaps", w.Body)
	}
	if strings.Contains(w.Body.String(), "secretive") {
		t.Error("the snapshot names an object")
	}
}

// The metrics of all caches of the process are in one registry, as long as they run.
func TestCache_MetricsAddUpOverCaches(t *testing.T) {
	objects := func() float64 {
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "flyball_informer_objects" {
				continue
			}
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == "ConfigMap" {
					return m.GetGauge().GetValue()
				}
			}
		}
		return 0
	}
	before := objects()
	t.Run("two caches", func(t *testing.T) {
		for range 2 {
			_, c, _ := started(t, cache.Options{}, configMap("default", "a", nil))
			if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := objects() - before; got != 2 {
			t.Errorf("flyball_informer_objects of ConfigMaps is %v, want 1 of each cache", got)
		}
	})
	if got := objects(); got != before {
		t.Errorf("flyball_informer_objects after the caches have ended is %v, want the %v before", got, before)
	}
}
