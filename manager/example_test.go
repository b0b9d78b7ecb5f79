// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// An operator with one controller, which keeps a Deployment for each Website.
func Example() {
	mgr, err := manager.New(manager.Options{Scheme: scheme})
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}

// setup is called by main and by tests.
func setup(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())

	r := websiteReconciler{client: mgr.Client()}
	c := reconcile.For(websites, r.Reconcile, reconcile.Options{})
	c.Watch(source.Owned(deployments, websites))
	return mgr.Add(c)
}

type websiteReconciler struct{ client *client.Client }

// Reconcile gets a cached object: shared, read-only, and never older than an own write.
func (r websiteReconciler) Reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	return reconcile.Result{}, r.client.Apply(ctx, deploymentFor(site), client.FieldOwner("website"))
}

func deploymentFor(site *webv1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: site.Namespace, Name: site.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(site, webv1.GroupVersion.WithKind("Website"))},
		},
		Spec: appsv1.DeploymentSpec{Replicas: site.Spec.Replicas}, // and a template
	}
}

var scheme = runtime.NewScheme()

func init() {
	exitOn(clientscheme.AddToScheme(scheme))
	exitOn(webv1.AddToScheme(scheme))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}
