// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func (f *forgetful) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	key := kube.KeyOf(site)
	f.mu.Lock()
	written := f.written[key]
	f.written[key] = site.Generation // the writes below may still be lost
	f.mu.Unlock()
	if written == site.Generation {
		return reconcile.Result{}, nil
	}
	return f.reconciler.reconcile(ctx, site)
}

type forgetful struct {
	reconciler
	mu      sync.Mutex
	written map[reconcile.Key]int64
}

func setupWithBug(mgr *manager.Manager) error {
	f := &forgetful{reconciler: reconciler{client: mgr.Client()}, written: map[reconcile.Key]int64{}}
	return mgr.Add(reconcile.For(informer.For[*webv1.Website](mgr.Informers()), f.reconcile, reconcile.Options{}))
}

// Find runs seeds until one shows what it looks for, here a write that is lost.
func ExampleFind() {
	var t *testing.T // that of the test
	scenario := func(w *kit.World) {
		w.Run(setupWithBug)
		site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
		page := &corev1.ConfigMap{ObjectMeta: site.ObjectMeta}
		w.Settled(func() error {
			if !w.Get(page) || page.Data["index.html"] != "two" {
				return fmt.Errorf("the page is %q, wanted is %q", page.Data["index.html"], "two")
			}
			return nil
		})
		w.Create(site)
		w.Sleep(5 * time.Second)
		w.Edit(site, func() { site.Spec.Content = "two" })
	}
	h, runs := kit.Find(t, websites, 1, 200, scenario, func(h *kit.History) bool { return len(h.Violations) > 0 })
	fmt.Println(runs, h.Violations)
}
