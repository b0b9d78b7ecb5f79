// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

var websites = kit.Config{
	Seeds:  200,
	CRDs:   []string{"config/crd.yaml"},
	Scheme: testScheme(),
	Actors: simulate.Actors{GarbageCollector: true, Workloads: true},
}

func keepsThePage(w *kit.World) {
	w.Run(setup) // the very function that main calls

	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	page := &corev1.ConfigMap{ObjectMeta: site.ObjectMeta}
	w.Settled(func() error {
		if w.Get(site) && (!w.Get(page) || page.Data["index.html"] != site.Spec.Content) {
			return fmt.Errorf("the page is %q, wanted is %q", page.Data["index.html"], site.Spec.Content)
		}
		return nil
	})

	site.Spec.Content = "one"
	w.Create(site)
	w.Sleep(5 * time.Second)
	w.Edit(site, func() { site.Spec.Content = "two" })
}

func setup(mgr *manager.Manager) error {
	r := reconciler{client: mgr.Client()}
	return mgr.Add(reconcile.For(informer.For[*webv1.Website](mgr.Informers()), r.reconcile, reconcile.Options{}))
}

type reconciler struct{ client *client.Client }

func (r reconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	page.Data = map[string]string{"index.html": site.Spec.Content}
	return reconcile.Result{}, r.client.Apply(ctx, page, client.FieldOwner("website"))
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, webv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// A test with the name TestWebsites runs the scenario with 200 seeds, each of which has other faults.
func Example() {
	var t *testing.T // the parameter of TestWebsites
	kit.Test(t, websites, keepsThePage)
}
