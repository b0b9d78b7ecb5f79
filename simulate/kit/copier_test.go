// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// The program under test keeps a copy named copy-of-x of each ConfigMap x, with the
// same data.

const prefix = "copy-of-"

type copier struct {
	configMaps informer.Lister[*corev1.ConfigMap]
	client     *client.Client
}

func setUpCopier(mgr *manager.Manager) error {
	return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] { return c.reconcile })
}

func addCopier(mgr *manager.Manager, f func(copier) reconcile.Func[reconcile.Key]) error {
	return addCopierWith(mgr, f, reconcile.Options{Workers: 2})
}

func addCopierWith(mgr *manager.Manager, f func(copier) reconcile.Func[reconcile.Key], opts reconcile.Options) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	c := reconcile.New("copier", f(copier{configMaps.Lister(), mgr.Client()}), opts)
	c.Watch(source.Kind(configMaps, originals))
	return mgr.Add(c)
}

func originals(obj kube.Object) iter.Seq[reconcile.Key] {
	return func(yield func(reconcile.Key) bool) {
		yield(reconcile.Key{Namespace: obj.GetNamespace(), Name: strings.TrimPrefix(obj.GetName(), prefix)})
	}
}

func (c copier) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	want, err := c.configMaps.Get(key)
	if apierrors.IsNotFound(err) {
		copied, err := c.configMaps.Get(copyOf(key))
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		return reconcile.Result{}, reconcile.IgnoreNotFound(c.client.Delete(ctx, copied))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	copied, err := c.configMaps.Get(copyOf(key))
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, c.client.Create(ctx, configMap(copyOf(key).Name, want.Data))
	case err != nil || maps.Equal(copied.Data, want.Data):
		return reconcile.Result{}, err
	}
	copied = kube.Copy(copied)
	copied.Data = want.Data
	return reconcile.Result{}, c.client.Update(ctx, copied)
}

func copyOf(key reconcile.Key) reconcile.Key {
	return reconcile.Key{Namespace: key.Namespace, Name: prefix + key.Name}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// copied checks that each original has its copy, and that no other copies exist.
func copied(w *kit.World) func() error {
	return func() error {
		all := map[string]map[string]string{}
		for m, err := range client.List[*corev1.ConfigMap](context.Background(), w.Client(), client.InNamespace("default")) {
			if err != nil {
				return err
			}
			all[m.Name] = m.Data
		}
		for name, data := range all {
			original, isCopy := strings.CutPrefix(name, prefix)
			if _, there := all[original]; isCopy && !there {
				return fmt.Errorf("%s is the copy of nothing", name)
			}
			if !isCopy && !maps.Equal(data, all[prefix+name]) {
				return fmt.Errorf("%s has %v, its copy %v", name, data, all[prefix+name])
			}
		}
		return nil
	}
}

func changes(w *kit.World) { changesUnder(w, setUpCopier) }

func changesUnder(w *kit.World, setup func(*manager.Manager) error) {
	w.Run(setup)
	changeThings(w)
}

func changeThings(w *kit.World) {
	w.Settled(copied(w))
	for i := range 6 {
		name := fmt.Sprintf("m%d", w.Draw("name", 3))
		m := configMap(name, nil)
		switch {
		case !w.Get(m):
			w.Create(configMap(name, map[string]string{"v": fmt.Sprint(i)}))
		case w.Draw("do", 3) == 0:
			w.Delete(m)
		default:
			w.Edit(m, func() { m.Data = map[string]string{"v": fmt.Sprint(i)} })
		}
		w.Sleep(time.Duration(w.Draw("pause", 4)) * time.Second)
	}
}
