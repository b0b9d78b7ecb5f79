// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// Half of the seeds have compact informers. All have the same history when every run has
// them: under faults, a compact informer shows what another shows.
func TestKit_CompactInformersHaveTheSameHistory_D5(t *testing.T) {
	all := kit.Config{Manager: manager.Options{Informers: informer.Options{Compact: compact.New(compact.Options{HotObjects: 2, DictionaryBytes: 1000})}}}
	for seed := uint64(1); seed < 9; seed++ {
		h := kit.Run(t, kit.Config{}, seed, changes)
		sound(t, h)
		if how, _ := h.Differs(kit.Run(t, all, seed, changes)); how != "" {
			t.Errorf("seed %#x has another history with compact informers: %s", seed, how)
		}
	}
}

// applier is the copier with server-side apply, of objects of which it keeps some fields.
type applier struct {
	copier
	fields []string
}

func (a applier) setup(mgr *manager.Manager) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers(), informer.Scope{Fields: a.fields})
	a.copier = copier{configMaps.Lister(), mgr.Client()}
	c := reconcile.New("copier", a.reconcile, reconcile.Options{Workers: 2})
	c.Watch(source.Kind(configMaps, originals))
	return mgr.Add(c)
}

func (a applier) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	want, err := a.configMaps.Get(key)
	if apierrors.IsNotFound(err) {
		return a.copier.reconcile(ctx, key)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	copied, err := a.configMaps.Get(copyOf(key))
	if err == nil && maps.Equal(copied.Data, want.Data) || err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, a.client.Apply(ctx, configMap(copyOf(key).Name, want.Data), client.FieldOwner("copier"))
}

// Under faults an informer of some fields gives the history of one of all, unless another
// handle makes it list more of them; then the program is right, too.
func TestKit_ProjectedInformersHaveTheSameHistory_D4(t *testing.T) {
	widened := 0
	for seed := uint64(1); seed < 9; seed++ {
		some := kit.Run(t, kit.Config{}, seed, func(w *kit.World) { changesUnder(w, applier{fields: []string{"data"}}.setup) })
		sound(t, some)
		all := kit.Run(t, kit.Config{}, seed, func(w *kit.World) { changesUnder(w, applier{}.setup) })
		if how, _ := some.Differs(all); how != "" {
			widened++
			t.Logf("seed %#x: %s", seed, how)
		}
	}
	if widened == 0 || widened == 8 {
		t.Errorf("%d of 8 seeds have another history with some fields; want it of those whose informers are made wider, and only of those", widened)
	}
}
