// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// gauges are client-go's informer metrics, of one informer.
type gauges struct {
	mu              sync.Mutex
	version, stored float64
}

type metric func(float64)

func (m metric) Set(v float64)     { m(v) }
func (m metric) Observe(v float64) { m(v) }

func (g *gauges) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return metric(func(float64) {})
}

func (g *gauges) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return metric(func(float64) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stored++
	})
}

func (g *gauges) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return metric(func(v float64) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.version = v
	})
}

// A program that knows nothing but client-go's factory starts, waits and shuts
// down as it did.
func TestClientGo_StartRunsTheFactory_G12(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(managed("a"))
		name, err := cache.NewInformerName("drop-in")
		w.Must(err)
		metrics := &gauges{}
		marked := func(obj any) (any, error) {
			m := obj.(metav1.Object)
			m.SetLabels(map[string]string{"transformed": "yes"})
			return obj, nil
		}
		shared := factory.New(w.factory, factory.Options{
			RunOnStart: true, Transform: marked, Name: name,
			Informers: clientgo.Options{StripManagedFields: true, Metrics: metrics},
		})
		maps := shared.Core().V1().ConfigMaps()
		lister := maps.Lister()

		shared.Start(w.ctx.Done())
		if synced := shared.WaitForCacheSync(w.ctx.Done()); !synced[reflect.TypeFor[*corev1.ConfigMap]()] {
			t.Fatalf("got %v, want ConfigMaps synced though nobody but Start ran anything", synced)
		}
		got, err := lister.ConfigMaps("ns").Get("a")
		if err != nil || got.Labels["transformed"] != "yes" || len(got.ManagedFields) != 0 {
			t.Errorf("got %v and %v, want the object as the transform made it, without managedFields", got, err)
		}

		late := shared.Core().V1().Secrets().Informer()
		if err := late.SetTransform(marked); err != nil {
			t.Errorf("an informer that has not started takes no transform: %v", err)
		}
		pass(time.Minute)
		if late.HasSynced() {
			t.Error("an informer runs before the Start that follows its asking")
		}
		shared.Start(w.ctx.Done())
		if synced := shared.WaitForCacheSync(w.ctx.Done()); len(synced) != 2 || !late.HasSynced() {
			t.Errorf("got %v, want both synced", synced)
		}

		metrics.mu.Lock()
		if metrics.version == 0 || metrics.stored == 0 {
			t.Errorf("version %v and %v batches were published, want some of each", metrics.version, metrics.stored)
		}
		metrics.mu.Unlock()
	})
}

func TestClientGo_ShutdownWaitsForWhatStartRan_G12(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		shared := factory.New(w.factory, factory.Options{RunOnStart: true})
		maps := shared.Core().V1().ConfigMaps().Informer()
		shared.StartWithContext(ctx)
		shared.WaitForCacheSyncWithContext(ctx)
		cancel()
		shared.Shutdown()
		if !maps.IsStopped() {
			t.Error("Shutdown has returned, and an informer is not stopped")
		}
		if err := w.factory.Run(w.ctx); err == nil {
			t.Error("the flyball factory was not run by Start")
		}
		again := shared.Core().V1().Secrets().Informer()
		shared.StartWithContext(w.ctx)
		synctest.Wait()
		if again.HasSynced() {
			t.Error("Start after Shutdown starts something")
		}
	})
}

// Our own controllers never need to hear of an object again: a key whose write
// was refused in an outage stays in the queue. The list after it gives only what
// differs, which is nothing.
func TestController_GoesOnAfterARefusedWriteThoughNothingIsGivenAgain(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		maps := informer.For[cmap](w.factory)
		h := told(w, maps)
		c, err := client.New(w.Config, w.Scheme, client.Options{})
		w.Must(err)
		var refused, runs int
		copies := reconcile.New("copies", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			runs++
			m, err := maps.Lister().Get(key)
			if err != nil {
				return reconcile.Result{}, err
			}
			err = c.Apply(ctx, newWidget(m.Name, m.Data["v"]), client.FieldOwner("copies"))
			if err != nil {
				refused++
			}
			return reconcile.Result{}, err
		}, reconcile.Options{Workers: 1})
		copies.Watch(source.Kind(maps, source.Self))
		w.Reject(widgets, 1000, 500)
		w.group.Go(func() {
			if err := copies.Run(w.ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v", err)
			}
		})
		start(w)
		pass(8 * time.Second)
		w.Network.Refuse(true)
		w.Network.Cut()
		w.Compact()
		w.RestartCache()
		w.Reject(widgets, 0, 0)
		pass(8 * time.Second)
		w.Network.Refuse(false)
		if got := h.next(); got != "added a=1" {
			t.Errorf("told %q, want the object once", got)
		}
		pass(time.Minute)
		if got := h.next(); got != "" {
			t.Errorf("told %q after the outage, want nothing: this shows no more than a relist does", got)
		}
		made := &widget{}
		err = c.Get(w.ctx, key("a"), made)
		if err != nil || made.Spec.Value != "1" || refused == 0 {
			t.Errorf("after %d runs, %d of them refused, the server has %v and %v; want the widget that was refused", runs, refused, made, err)
		}
	})
}
