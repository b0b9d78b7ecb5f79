// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// stepwise adds a controller that makes the ConfigMap first for the ConfigMap m, and second in
// its next reconcile, which it asks for or not.
func stepwise(mgr *manager.Manager, asks, omits bool) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	step := func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if _, err := configMaps.Lister().Get(key); err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		for _, name := range []string{"first", "second"} {
			_, err := configMaps.Lister().Get(reconcile.Key{Namespace: key.Namespace, Name: name})
			if !apierrors.IsNotFound(err) {
				continue
			}
			if err := mgr.Client().Create(ctx, configMap(name, nil)); err != nil || !asks {
				return reconcile.Result{}, err
			}
			return reconcile.After(time.Second, "one at a time"), nil
		}
		return reconcile.Result{}, nil
	}
	c := reconcile.New("steps", step, reconcile.Options{OmitOwnEvents: omits})
	c.Watch(source.Kind(configMaps, func(kube.Object) iter.Seq[reconcile.Key] {
		return func(yield func(reconcile.Key) bool) { yield(reconcile.Key{Namespace: "default", Name: "m"}) }
	}))
	return mgr.Add(c)
}

// The run needs no check of the result to find the step that nothing leads to.
func TestKit_FindsWhoStopsBeforeItsWorkIsDone_V24(t *testing.T) {
	for _, row := range []struct {
		name        string
		asks, omits bool
		says        string
	}{
		{"own events wake", false, false, ""},
		{"it asks for the next reconcile", true, true, ""},
		{"nothing calls it", false, true, "manager-1's steps default/m returned after writing ConfigMap default/first, and nothing will call it again"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
				w.Run(func(mgr *manager.Manager) error { return stepwise(mgr, row.asks, row.omits) })
				w.Create(configMap("m", nil))
			})
			if row.says == "" {
				sound(t, h)
				return
			}
			finds(t, h, "V24", row.says)
			if len(h.Violations) != 1 {
				t.Errorf("violations %v, want that one alone", h.Violations)
			}
		})
	}
}

// An event that wakes no key is in the history, with the key that it would have woken.
func TestKit_HistoryHasTheEventsThatWereOmitted_K7(t *testing.T) {
	for _, omits := range []bool{false, true} {
		h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
			w.Run(func(mgr *manager.Manager) error { return stepwise(mgr, true, omits) })
			w.Create(configMap("m", nil))
		})
		sound(t, h)
		omitted := map[string]int{}
		for i, e := range h.Events {
			if e.What != kit.Omitted {
				continue
			}
			omitted[e.Who+" "+e.Kind+" "+e.Key+" for "+e.Text]++
			if !slices.ContainsFunc(h.Events[:i], func(w kit.Event) bool {
				return w.What == kit.Changed && w.Kind == "ConfigMap" && w.Key == e.Key && w.Who == e.Who
			}) {
				t.Errorf("event %d omits %s, which %s had not written", i, e.Key, e.Who)
			}
		}
		want := map[string]int{}
		if omits {
			want = map[string]int{"manager-1 ConfigMap default/first for default/m": 1, "manager-1 ConfigMap default/second for default/m": 1}
		}
		if !maps.Equal(omitted, want) {
			t.Errorf("omits %t: the history omits %v, want %v", omits, omitted, want)
		}
	}
}
