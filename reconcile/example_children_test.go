// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupWithChildren(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	services := informer.For[*corev1.Service](mgr.Informers())

	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{
		reconcile.Children(deployments), reconcile.Children(services),
	}, reconcile.ChildSetOptions{FieldOwner: "website"})

	c := reconcile.For(websites, func(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
		wanted := []kube.Object{deploymentFor(site)}
		if site.Spec.Host != "" {
			wanted = append(wanted, serviceFor(site))
		}
		_, err := children.Apply(ctx, site, wanted...)
		return reconcile.Result{}, err
	}, reconcile.Options{Predicate: source.SpecChanged})
	c.Watch(source.Owned(deployments, websites), source.Owned(services, websites))
	return mgr.Add(c)
}

func deploymentFor(site *webv1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: site.Spec.Replicas},
	}
}

func serviceFor(site *webv1.Website) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
}

// A ChildSet applies the wanted children and deletes the others.
func ExampleNewChildSet() {
	var mgr *manager.Manager // of your program
	if err := setupWithChildren(mgr); err != nil {
		fmt.Println(err)
	}
}
