// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

const (
	fieldOwner = "website"
	finalizer  = "example.flyball.dev/website"
)

// setup is what main runs, and what tests run.
func setup(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	services := informer.For[*corev1.Service](mgr.Informers())
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())

	r := &reconciler{deployments: deployments.Lister(), services: services.Lister(), client: mgr.Client()}
	f := reconcile.WithFinalizer(finalizer, websites.Lister(), mgr.Client(), r.reconcile, r.cleanUp)
	c := reconcile.New("website", f, reconcile.Options{Workers: 4})
	c.Watch(source.Kind(websites, source.Self, source.SpecChanged))
	c.Watch(source.Kind(deployments, source.Owner(websites)))
	c.Watch(source.Kind(services, source.Owner(websites)))
	c.Watch(source.Kind(configMaps, source.Owner(websites)))
	return mgr.Add(c)
}

// reconciler makes the children of a Website what they should be, and says in
// its status what is the case.
type reconciler struct {
	deployments informer.Lister[*appsv1.Deployment]
	services    informer.Lister[*corev1.Service]
	client      *client.Client
}

func (r *reconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	for _, child := range childrenOf(site) {
		if err := r.client.Apply(ctx, child, client.FieldOwner(fieldOwner), client.Force{}); err != nil {
			return reconcile.Result{}, err
		}
	}
	deployment, err := r.deployments.Get(informer.KeyOf(site))
	if apierrors.IsNotFound(err) {
		deployment, err = nil, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.updateStatus(ctx, site, statusOf(site, deployment, time.Now()))
}

// updateStatus writes the status if it has changed, and an event if the page
// came into or out of service.
func (r *reconciler) updateStatus(ctx context.Context, site *webv1.Website, status webv1.WebsiteStatus) error {
	if equality.Semantic.DeepEqual(site.Status, status) {
		return nil
	}
	before := meta.FindStatusCondition(site.Status.Conditions, conditionReady)
	site = informer.Copy(site)
	site.Status = status
	if err := r.client.Status().Update(ctx, site); err != nil {
		return err
	}
	after := meta.FindStatusCondition(status.Conditions, conditionReady)
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	return r.client.Create(ctx, eventFor(site, before, after, time.Now()))
}

// cleanUp runs before a deleted Website goes: traffic stops first, so that
// nobody is sent to replicas that are going away. The garbage collector takes
// the rest, since it is owned by the Website.
func (r *reconciler) cleanUp(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	service, err := r.services.Get(informer.KeyOf(site))
	if err == nil && metav1.IsControlledBy(service, site) {
		err = r.client.Delete(ctx, service)
	}
	return reconcile.Result{}, reconcile.IgnoreNotFound(err)
}
