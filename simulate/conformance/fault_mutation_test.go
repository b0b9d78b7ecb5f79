// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// findings are the mutations that were found.
type findings struct {
	mu struct {
		sync.Mutex
		all []informer.Mutation
	}
}

func (f *findings) add(m informer.Mutation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.all = append(f.mu.all, m)
}

// next are those that were found since the last call, each in a line.
func (f *findings) next() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, m := range f.mu.all {
		lines = append(lines, fmt.Sprintf("%s %s %s by %s repaired=%v", m.Kind.Kind, m.Key.Name, strings.Join(m.Fields, " "), strings.Join(m.Suspects, " or "), m.Repaired))
	}
	f.mu.all = nil
	return strings.Join(lines, "\n")
}

func detecting(rate float64) (*findings, informer.Options) {
	f := &findings{}
	return f, informer.Options{DetectMutations: informer.MutationDetection{Rate: rate, OnMutation: f.add}}
}

// over tells the race detector that a write was over before the detector looks, or that a look
// was over before a write: the detector reads, rightly, what a culprit may be writing to.
func over(w *world) { w.factory.MutationDetector().Begin(time.Second)() }

func TestInformer_MutatedObjectIsFoundAndNamed_B4(t *testing.T) {
	found, opts := detecting(1)
	expect := func(t *testing.T, what, want string) {
		t.Helper()
		if got := found.next(); got != want {
			t.Errorf("%s: found %q, want %q", what, got, want)
		}
	}
	t.Run("a handler", func(t *testing.T) {
		simulated(t, opts, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"), configMap("b", "1"))
			i := informer.For[cmap](w.factory)
			_, err := i.AddHandler(func(e kube.Event[cmap]) {
				if e.Key.Name == "a" && e.Type != kube.Deleted {
					e.New.Data["v"] = "mine"
				}
			}, informer.HandlerOptions{Name: "culprit"})
			w.Must(err)
			_, err = informer.For[*widget](w.factory).AddHandler(func(kube.Event[*widget]) {}, informer.HandlerOptions{Name: "innocent"})
			w.Must(err)
			start(w)
			if got := found.next(); !strings.Contains(got, `ConfigMap a .data["v"] by `) || !strings.Contains(got, `handler "culprit" of ConfigMap`) || !strings.Contains(got, "repaired=true") || strings.Contains(got, "\n") {
				t.Errorf("found %q, want .data of a, by the culprit, once, and repaired", got)
			}
			if n := w.logged(`"key"="ns/a"`, `.data[`, "culprit"); n != 1 {
				t.Errorf("%d lines in the log name key, field and culprit; want 1: %q", n, w.journal.lines)
			}
			holds(t, i, "a=1 b=1", "the store has what the handler has made of it")
			w.Store(configMap("a", "2"))
			pass(time.Second)
			holds(t, i, "a=2 b=1", "the store has what the handler has made of it")
			if got := found.next(); strings.Count(got, "culprit") != 1 {
				t.Errorf("found %q, want the culprit again", got)
			}
			if n := w.logged(`"key"="ns/a"`, `.data[`, "culprit"); n != 1 {
				t.Errorf("%d lines in the log, want 1: an object and field are told of once", n)
			}
			if n := i.Snapshot().Mutations; n != 2 {
				t.Errorf("%d counted, want 2", n)
			}
		})
		expect(t, "at the end", "")
	})
	t.Run("a handler that changes what was before", func(t *testing.T) {
		simulated(t, opts, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"))
			i := informer.For[cmap](w.factory)
			_, err := i.AddHandler(func(e kube.Event[cmap]) {
				if e.Type == kube.Updated {
					time.Sleep(time.Millisecond) // until the state that was replaced has been looked at
					over(w)
					e.Old.Labels = map[string]string{"app.kubernetes.io/name": "mine"}
				}
			}, informer.HandlerOptions{Name: "culprit"})
			w.Must(err)
			start(w)
			w.Store(configMap("a", "2"))
			pass(time.Second)
			expect(t, "an old state", `ConfigMap a .metadata.labels["app.kubernetes.io/name"] by handler "culprit" of ConfigMap repaired=false`)
		})
	})
	t.Run("a reconciler", func(t *testing.T) {
		simulated(t, opts, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"), configMap("b", "1"), newWidget("x", "1"))
			i, widgets := informer.For[cmap](w.factory), informer.For[*widget](w.factory)
			run := func(name string, f func(key reconcile.Key)) {
				c := reconcile.New(name, func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
					f(key)
					return reconcile.Result{}, nil
				}, reconcile.Options{Workers: 1, Witness: w.factory.MutationDetector()})
				c.Watch(source.Kind(i, source.Self))
				w.group.Go(func() {
					if err := c.Run(w.ctx); err != nil {
						t.Errorf("run: %v", err)
					}
				})
			}
			run("innocent", func(reconcile.Key) { _, _ = i.Lister().Get(key("b")) })
			start(w)
			pass(time.Second)
			run("culprit", func(key reconcile.Key) {
				if key.Name != "a" {
					return
				}
				time.Sleep(time.Millisecond) // until the handler that named the key has been looked at
				for wi := range widgets.Lister().All() {
					wi.Spec.Value = "mine"
				}
				cm, err := i.Lister().Get(key)
				if err != nil || cm.Data["v"] == "1" {
					return
				}
				cm.Finalizers = append(cm.Finalizers, "mine")
			})
			pass(time.Second)
			expect(t, "what it lists", `Widget x .spec.value by reconciler "culprit" for ns/a repaired=true`)
			if got := held(widgets); got != "x=1" {
				t.Errorf("the store has %q, want x=1: the reconciler's change stays", got)
			}
			w.Store(configMap("a", "2"))
			pass(time.Second)
			got := strings.Split(found.next(), "\n")
			slices.Sort(got)
			for n, want := range []string{"ConfigMap a .metadata.finalizers by ", "Widget x .spec.value by "} {
				if n >= len(got) || !strings.HasPrefix(got[n], want) || !strings.Contains(got[n], `reconciler "culprit" for ns/a`) || !strings.HasSuffix(got[n], "repaired=true") {
					t.Errorf("found %q, want %q the culprit", got, want)
				}
			}
		})
	})
	t.Run("nobody that the informer runs", func(t *testing.T) {
		simulated(t, opts, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"))
			i := informer.For[cmap](w.factory)
			start(w)
			cm, err := i.Lister().Get(key("a"))
			w.Must(err)
			cm.Annotations = map[string]string{"mine": ""}
			over(w)
			pass(2 * time.Minute)
			expect(t, "a goroutine of the user's", `ConfigMap a .metadata.annotations["mine"] by  repaired=true`)
			cm, err = i.Lister().Get(key("a"))
			w.Must(err)
			delete(cm.Data, "v")
			over(w)
			w.Store(configMap("a", "2")) // no time passes
			expect(t, "before a new version hides it", `ConfigMap a .data["v"] by  repaired=false`)
			cm, err = i.Lister().Get(key("a"))
			w.Must(err)
			cm.Data["v"] = "mine"
			over(w)
		})
		expect(t, "at the end of Run", `ConfigMap a .data["v"] by  repaired=true`)
	})
	t.Run("in a sample", func(t *testing.T) {
		t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "") // which means every object
		found, opts := detecting(0.5)
		simulated(t, opts, func(t *testing.T, w *world) {
			for n := range 400 {
				w.Store(configMap(fmt.Sprint(n), "1"))
			}
			i := informer.For[cmap](w.factory)
			_, err := i.AddHandler(func(e kube.Event[cmap]) { e.New.Data["v"] = "mine" }, informer.HandlerOptions{Name: "culprit"})
			w.Must(err)
			start(w)
			if n := i.Snapshot().Mutations; n < 100 || n > 256 {
				t.Errorf("%d of 400 are found, want about half", n)
			}
			if got := found.next(); strings.Contains(got, "by  ") {
				t.Errorf("found %q, want a culprit each time", got)
			}
		})
	})
}

// Nobody is accused where nothing was changed: under load, with own writes,
// transforms, resyncs, deletions, and readers of all.
func TestInformer_DetectorRaisesNoFalseAlarm_B4(t *testing.T) {
	found, opts := detecting(1)
	opts.Resync = 10 * time.Second
	simulated(t, opts, func(t *testing.T, w *world) {
		i := informer.For[cmap](w.factory)
		w.Must(i.SetTransform(func(cm cmap) (cmap, error) {
			cm.Labels = map[string]string{"transformed": "yes"}
			return cm, nil
		}))
		w.Must(i.AddIndex("v", func(cm cmap) []string { return []string{cm.Data["v"]} }))
		var overlaid atomic.Int64
		var kept []cmap
		_, err := i.AddHandler(func(e kube.Event[cmap]) {
			kept = append(kept, e.Latest())
			for _, cm := range kept[max(0, len(kept)-5):] {
				_ = cm.String()
			}
		}, informer.HandlerOptions{EveryEvent: true})
		w.Must(err)
		c := reconcile.New("reader", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			cm, err := i.Lister().Get(key)
			if err != nil || cm.Annotations["own"] != "" {
				return reconcile.Result{}, nil
			}
			own := kube.Copy(cm)
			own.Annotations = map[string]string{"own": "write"}
			if own.ResourceVersion, err = w.Put(own); err == nil {
				i.Observe(kube.Written{
					Effect: kube.Stored, Kind: i.Kind(), Key: key, UID: own.UID,
					Version: kube.ParseVersion(own.ResourceVersion), Object: own,
				})
				overlaid.Add(1)
			}
			return reconcile.Result{}, nil
		}, reconcile.Options{Witness: w.factory.MutationDetector()})
		c.Watch(source.Kind(i, source.Self))
		w.group.Go(func() {
			if err := c.Run(w.ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
		start(w)
		for n := range 2000 {
			name := fmt.Sprint(n % 17)
			if n%13 == 12 && i.Snapshot().Objects > 10 {
				_ = w.Remove(configMaps, key(name))
			} else {
				_, err := w.Put(configMap(name, fmt.Sprint(n)))
				w.Must(err)
			}
			if n%500 == 499 {
				w.Network.Cut()
				pass(time.Minute)
			}
		}
		pass(5 * time.Minute)
		if overlaid.Load() == 0 {
			t.Error("no own write was overlaid: the test shows nothing of them")
		}
		if n := i.Snapshot().Mutations; n != 0 {
			t.Errorf("%d mutations counted, want none", n)
		}
	})
	if got := found.next(); got != "" {
		t.Errorf("found %q, want nothing: nobody has changed anything", got)
	}
}
