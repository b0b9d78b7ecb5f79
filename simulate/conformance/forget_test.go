// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/source"
)

// footprint is what a manager has, in numbers.
type footprint struct{ goroutines, series, controllers, sources, informers, runnables int }

func heldBy(t *testing.T, m *manager.Manager) (h footprint) {
	t.Helper()
	synctest.Wait()
	families, err := m.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		// Those of the client remember groups and verbs, which are few.
		if name := family.GetName(); strings.HasPrefix(name, "workqueue_") || strings.HasPrefix(name, "controller_runtime_") || strings.HasPrefix(name, "flyball_informer_") || strings.HasPrefix(name, "flyball_reconcile_") {
			h.series += len(family.GetMetric())
		}
	}
	s := m.Snapshot()
	for _, stage := range s.Stages {
		h.runnables += len(stage.Runnables)
	}
	for _, c := range s.Controllers {
		h.sources += len(c.Sources)
	}
	h.goroutines, h.controllers, h.informers = runtime.NumGoroutine(), len(s.Controllers), len(s.Informers)
	return h
}

// A controller for each of a hundred kinds comes and goes.
func TestManager_HundredKindsComeAndGo_M17(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		const kinds = 100
		for n := range kinds {
			w.Install(simulate.Kind{GroupVersionKind: thingKind(n), Namespaced: true})
		}
		m, err := manager.New(manager.Options{Config: w.Config, Logger: logr.Discard(), HealthAddress: "0", MetricsAddress: "0"})
		if err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w.group.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		start(w)
		pass(time.Minute)
		var before footprint
		for round := range 3 {
			var controllers []*reconcile.Controller[reconcile.Key]
			var informers []interface{ Release() }
			for n := range kinds {
				i := informer.ForKind(m.Informers(), thingKind(n))
				c := reconcile.New(fmt.Sprint("of kind ", n), nothing, reconcile.Options{})
				c.Watch(source.Kind(i, source.Self))
				if err := m.Add(c); err != nil {
					t.Fatal(err)
				}
				controllers, informers = append(controllers, c), append(informers, i)
			}
			pass(time.Minute)
			if h := heldBy(t, m); h.controllers != kinds || h.informers != kinds || h.goroutines < 3*kinds || h.series < 3*kinds {
				t.Fatalf("with a controller for each kind it holds %+v: the test counts nothing", h)
			}
			for _, c := range controllers {
				if err := m.Remove(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range informers {
				i.Release()
			}
			pass(5 * time.Minute) // idle connections end
			after := heldBy(t, m)
			all := after
			if round == 0 {
				before = after // the first round also starts what the manager keeps
				before.controllers, before.sources, before.informers = 0, 0, 0
			}
			grown := after.goroutines > before.goroutines+kinds/2 // some are of connections
			after.goroutines = before.goroutines
			if grown || after != before || after.goroutines > kinds || after.series > kinds {
				t.Fatalf("round %d: after the removal it holds\n%+v, want\n%+v", round, all, before)
			}
		}
	})
}

func thingKind(n int) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "things.example.com", Version: "v1", Kind: fmt.Sprintf("Thing%03d", n)}
}
