// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
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

// mounts keeps in the annotation of the Secret app what the ConfigMap that it refers to says.
// It watches the ConfigMap or not, and reconciles again after a while in any case.
func mounts(mgr *manager.Manager, watches bool, again time.Duration, live bool) error {
	secrets, configMaps := informer.For[*corev1.Secret](mgr.Informers()), informer.For[*corev1.ConfigMap](mgr.Informers())
	c := reconcile.New("mounts", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		app, err := secrets.Lister().Get(key)
		if err != nil || key.Name != "app" {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		of := configMap("config", nil)
		if live {
			err = mgr.Client().Get(ctx, kube.KeyOf(of), of)
		} else {
			of, err = configMaps.Lister().Get(kube.KeyOf(of))
		}
		if err != nil {
			return reconcile.After(again, "again and again"), reconcile.IgnoreNotFound(err)
		}
		if app.Annotations["config"] == of.Data["v"] {
			return reconcile.After(again, "again and again"), nil
		}
		patch := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"config": of.Data["v"]}}})
		return reconcile.After(again, "again and again"), mgr.Client().Patch(ctx, kube.Copy(app), patch)
	}, reconcile.Options{})
	c.Watch(source.Kind(secrets, source.Self))
	if watches {
		c.Watch(source.Kind(configMaps, func(kube.Object) iter.Seq[reconcile.Key] {
			return func(yield func(reconcile.Key) bool) { yield(reconcile.Key{Namespace: "default", Name: "app"}) }
		}))
	}
	return mgr.Add(c)
}

// editsConfig changes the ConfigMap last, and something else in between.
func editsConfig(w *kit.World) {
	config := configMap("config", map[string]string{"v": "1"})
	app := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	w.Settled(func() error {
		if w.Get(app) && w.Get(config) && app.Annotations["config"] != config.Data["v"] {
			return fmt.Errorf("app has %q, want %q", app.Annotations["config"], config.Data["v"])
		}
		return nil
	})
	w.Create(config)
	w.Create(app)
	w.Sleep(time.Second)
	w.Create(configMap("other", nil))
	w.Edit(config, func() { config.Data["v"] = "2" })
}

// A timer hides that a reconcile reads what it does not watch. A timer for what no event tells is
// not checked.
func TestKit_TimerThatHidesAForgottenWatchIsFound_K16(t *testing.T) {
	for name, c := range map[string]struct {
		watches, live bool
		timed         []string
		says          string
	}{
		"watched":                    {watches: true},
		"read from the cache":        {says: "manager-1's mounts default/app: only a timer would have brought the key to its end"},
		"read from the server":       {live: true, says: "ConfigMap default/config (user, at 1."},
		"the timer is there to poll": {live: true, timed: []string{"mounts"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{}, Timed: c.timed}, 1, func(w *kit.World) {
				w.Run(func(mgr *manager.Manager) error { return mounts(mgr, c.watches, time.Minute, c.live) })
				editsConfig(w)
			})
			if c.says == "" {
				sound(t, h)
			} else {
				finds(t, h, "V26", c.says)
			}
		})
	}
}

// A reconcile that acts when it is time is right: called early it does nothing.
func TestKit_TimerOfAReconcileThatWaitsForTheTimeIsRight_K16(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(func(mgr *manager.Manager) error {
			configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
			c := reconcile.New("expiry", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
				m, err := configMaps.Lister().Get(key)
				if err != nil || m.Data["expires"] == "" {
					return reconcile.Result{}, reconcile.IgnoreNotFound(err)
				}
				if left := time.Until(m.CreationTimestamp.Add(time.Minute)); left > 0 {
					return reconcile.After(left, "it has not expired yet"), nil
				}
				return reconcile.Result{}, reconcile.IgnoreNotFound(mgr.Client().Delete(ctx, m))
			}, reconcile.Options{})
			c.Watch(source.Kind(configMaps, source.Self))
			return mgr.Add(c)
		})
		m := configMap("m", map[string]string{"expires": "yes"})
		w.Settled(func() error {
			if w.Get(m) {
				return fmt.Errorf("m is there")
			}
			return nil
		})
		w.Create(m)
		w.Sleep(time.Second)
		w.Create(configMap("other", nil))
	})
	sound(t, h)
}

// dices keeps a Secret with a password for the ConfigMap m.
func dices(mgr *manager.Manager, anew, omits bool) error {
	configMaps, secrets := informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*corev1.Secret](mgr.Informers())
	rolls := 0
	c := reconcile.New("dices", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if _, err := configMaps.Lister().Get(key); err != nil || key.Name != "m" {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		has, err := secrets.Lister().Get(key)
		if err == nil && !anew {
			return reconcile.Result{}, nil
		}
		rolls++ // a random number
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, StringData: map[string]string{"password": fmt.Sprint(rolls)}}
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, mgr.Client().Create(ctx, secret)
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		secret.ResourceVersion = has.ResourceVersion
		return reconcile.Result{}, mgr.Client().Update(ctx, secret)
	}, reconcile.Options{OmitOwnEvents: omits})
	c.Watch(source.Kind(configMaps, source.Self))
	c.Watch(source.Kind(secrets, source.Self))
	return mgr.Add(c)
}

// A new password at each run is found as such: with own events it is a loop without an end, and
// without them a reconcile that writes each time that it is called.
func TestKit_OutputThatDiffersForEqualInputsIsFound_K16(t *testing.T) {
	for name, c := range map[string]struct{ anew, omits, finds bool }{
		"kept":                         {},
		"kept, own events omitted":     {omits: true},
		"anew at each run":             {anew: true, finds: true},
		"anew, its own events omitted": {anew: true, omits: true, finds: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{}, MaxEvents: 3000}, 1, func(w *kit.World) {
				w.Run(func(mgr *manager.Manager) error { return dices(mgr, c.anew, c.omits) })
				w.Create(configMap("m", nil))
			})
			if !c.finds {
				sound(t, h)
				return
			}
			finds(t, h, "V27", "dices default/m writes other values into data.password of Secret default/m each time")
			if h.Violations[0].Invariant != "V27" {
				t.Errorf("the first violation is %s, want V27, which explains the others", h.Violations[0])
			}
			for _, v := range h.Violations {
				if v.Invariant == "V24" {
					t.Errorf("%s: no work was left, the same is done again", v)
				}
			}
		})
	}
}
