// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

const (
	fieldOwner = "website"
	finalizer  = "example.flyball.dev/website"
	urgent     = 50 // a priority
)

// setup adds the controllers to mgr. main and the tests call it.
func setup(mgr *manager.Manager) error { return setupWith(mgr, asItIs) }

// siteFunc reconciles a Website.
type siteFunc func(context.Context, *webv1.Website) (reconcile.Result, error)

func asItIs(r *reconciler) siteFunc { return r.reconcile }

// setupWith is setup with the caller's siteFunc, so a test can plant a bug there and
// nowhere else.
func setupWith(mgr *manager.Manager, of func(*reconciler) siteFunc) error {
	if err := addChecks(mgr); err != nil {
		return err
	}
	// The pages are long and rarely read: the cache holds their ConfigMaps compressed.
	pages := informer.For[*corev1.ConfigMap](mgr.Informers())
	if err := pages.Compact(compact.New(compact.Options{})); err != nil {
		return err
	}
	return mgr.Add(newController(mgr, of))
}

func newController(mgr *manager.Manager, of func(*reconciler) siteFunc) *reconcile.ObjectController[*webv1.Website] {
	websites := informer.For[*webv1.Website](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	services := informer.For[*corev1.Service](mgr.Informers())
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())

	r := newReconciler(mgr, deployments, services, configMaps)
	c := reconcile.For(websites, of(r), reconcile.Options{
		Predicate:     source.SpecChanged,
		OmitOwnEvents: true, // each reconcile does all that can be done, so what it has written needs no other
		PrioritizeBy:  urgentIfChanged,
		FairBy:        reconcile.ByNamespace, // a namespace with thousands of Websites does not delay the others
	})
	c.Finalize(finalizer, mgr.Client(), r.cleanUp)
	c.Watch(source.Owned(services, websites), source.Owned(configMaps, websites))
	// Each Pod that comes or goes changes the Deployment's status: reconcile when the changes pause.
	c.Watch(source.Debounce(source.Owned(deployments, websites), 100*time.Millisecond, time.Second))
	return c
}

// urgentIfChanged puts what a user has just changed or deleted ahead of what follows from
// earlier changes.
func urgentIfChanged(_ reconcile.Key, cause source.Cause) int {
	if cause.Source == "kind Website" && cause.Renewed() {
		return urgent
	}
	return reconcile.DefaultPriority(cause)
}

// reconciler makes the children of a Website match it, and reports the observed state in
// its status.
type reconciler struct {
	deployments informer.Lister[*appsv1.Deployment]
	services    informer.Lister[*corev1.Service]
	children    *reconcile.ChildSet
	client      *client.Client
	events      manager.EventRecorder
}

func newReconciler(mgr *manager.Manager, deployments *informer.SharedInformer[*appsv1.Deployment],
	services *informer.SharedInformer[*corev1.Service], configMaps *informer.SharedInformer[*corev1.ConfigMap]) *reconciler {
	kinds := []reconcile.ChildKind{reconcile.Children(configMaps), reconcile.Children(deployments), reconcile.Children(services)}
	return &reconciler{
		deployments: deployments.Lister(),
		services:    services.Lister(),
		children:    reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), kinds, reconcile.ChildSetOptions{FieldOwner: fieldOwner}),
		client:      mgr.Client(),
		events:      mgr.Events("website"),
	}
}

func (r *reconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	if _, err := r.children.Apply(ctx, site, childrenOf(site)...); err != nil {
		return reconcile.Result{}, errors.Join(err, r.updateStatus(ctx, site, failedStatusOf(site, err, reconcile.Now(ctx))))
	}
	deployment, err := r.deployments.Get(kube.KeyOf(site))
	if apierrors.IsNotFound(err) {
		deployment, err = nil, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.updateStatus(ctx, site, statusOf(site, deployment, reconcile.Now(ctx)))
}

// updateStatus writes the status if it has changed, and records an event if the page went
// into or out of service, or a child could not be applied.
func (r *reconciler) updateStatus(ctx context.Context, site *webv1.Website, status webv1.WebsiteStatus) error {
	before := meta.FindStatusCondition(site.Status.Conditions, conditionReady)
	told := kube.Copy(site)
	told.Status = status
	if changed, err := r.client.PatchChanges(ctx, site, told); err != nil || !changed {
		return err
	}
	after := meta.FindStatusCondition(status.Conditions, conditionReady)
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return nil
	}
	r.events.Eventf(site, nil, eventType(before, after), after.Reason, "Reconcile", "%s", after.Message)
	return nil
}

// cleanUp runs before a deleted Website goes: it stops traffic first, so no requests reach
// replicas that are being deleted. The garbage collector deletes the rest, because the
// Website owns it.
func (r *reconciler) cleanUp(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	service, err := r.services.Get(kube.KeyOf(site))
	if err == nil && metav1.IsControlledBy(service, site) {
		err = r.client.Delete(ctx, service)
	}
	return reconcile.Result{}, reconcile.IgnoreNotFound(err)
}
