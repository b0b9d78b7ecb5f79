// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// bareControlPlane does what a control plane without a controller manager lacks, as far as
// the example needs it: Deployments become ready, and garbage is collected.
func bareControlPlane(mgr *manager.Manager) error {
	fmt.Println("there is no Deployment controller and no garbage collector here: this program plays those parts")
	websites := informer.For[*webv1.Website](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	services := informer.For[*corev1.Service](mgr.Informers())
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())

	kubelet := reconcile.For(deployments, func(ctx context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
		return reconcile.Result{}, makeReady(ctx, mgr.Client(), d)
	}, reconcile.Options{Name: "bare-deployments"})

	collector := garbage{client: mgr.Client(), websites: websites.Lister(), children: []func(reconcile.Key) (kube.Object, error){
		getter(services.Lister()), getter(deployments.Lister()), getter(configMaps.Lister()),
	}}
	gc := reconcile.New("bare-garbage-collector", collector.reconcile, reconcile.Options{})
	gc.Watch(source.Kind(websites, source.Self))
	gc.Watch(source.Owned(services, websites), source.Owned(deployments, websites), source.Owned(configMaps, websites))

	if err := mgr.Add(kubelet); err != nil {
		return err
	}
	return mgr.Add(gc)
}

// makeReady sets the status of d to all replicas running.
func makeReady(ctx context.Context, c *client.Client, d *appsv1.Deployment) error {
	want := *d.Spec.Replicas
	if d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == want {
		return nil
	}
	d = kube.Copy(d)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           want,
		UpdatedReplicas:    want,
		ReadyReplicas:      want,
		AvailableReplicas:  want,
	}
	return c.Status().Update(ctx, d)
}

// garbage deletes the children of deleted Websites.
type garbage struct {
	client   *client.Client
	websites informer.Lister[*webv1.Website]
	children []func(reconcile.Key) (kube.Object, error)
}

func (g garbage) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	site, err := g.websites.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	for _, get := range g.children {
		child, err := get(key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.Kind != "Website" || site != nil && site.UID == owner.UID {
			continue
		}
		err = g.client.Delete(ctx, child, client.Preconditions{UID: child.GetUID()})
		if err := reconcile.IgnoreNotFound(err); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

func getter[T kube.Object](l informer.Lister[T]) func(reconcile.Key) (kube.Object, error) {
	return func(key reconcile.Key) (kube.Object, error) { return l.Get(key) }
}
