// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller has the controller of Pages, as it is written for controller-runtime.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pagev1 "github.com/flyball-dev/flyball/examples/controllerruntime/api/v1"
)

const (
	// Finalizer keeps a deleted page until it is off the list.
	Finalizer = "example.flyball.dev/listed"
	// Listed is the ConfigMap of each namespace that lists its pages.
	Listed = "pages"
)

// PageReconciler keeps what belongs to a Page: a ConfigMap with its content and a Deployment that shows it, both
// owned, and a line in the list of pages, which nobody owns.
type PageReconciler struct{ client.Client }

// SetupWithManager adds the controller to a manager.
func (r *PageReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&pagev1.Page{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile brings the cluster closer to the spec of one page.
func (r *PageReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	page := &pagev1.Page{}
	if err := r.Get(ctx, req.NamespacedName, page); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !page.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finish(ctx, page)
	}
	if controllerutil.AddFinalizer(page, Finalizer) {
		if err := r.Update(ctx, page); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	if err := r.list(ctx, page, map[string]string{page.Name: "listed"}); err != nil {
		return ctrl.Result{}, err
	}
	owner := metaac.OwnerReference().WithAPIVersion(pagev1.GroupVersion.String()).WithKind("Page").
		WithName(page.Name).WithUID(page.UID).WithController(true).WithBlockOwnerDeletion(true)
	content := coreac.ConfigMap(page.Name, page.Namespace).WithOwnerReferences(owner).
		WithData(map[string]string{"index.html": page.Spec.Content})
	if err := r.Apply(ctx, content, client.FieldOwner("page"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the content: %w", err)
	}
	if err := r.Apply(ctx, deploymentOf(page, owner), client.FieldOwner("page"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the Deployment: %w", err)
	}
	return ctrl.Result{}, r.report(ctx, page)
}

// finish takes a deleted page off the list, and lets it go. The rest is collected with it.
func (r *PageReconciler) finish(ctx context.Context, page *pagev1.Page) error {
	if !controllerutil.ContainsFinalizer(page, Finalizer) {
		return nil
	}
	if err := r.list(ctx, page, nil); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(page, Finalizer)
	if err := r.Update(ctx, page); err != nil {
		return fmt.Errorf("remove the finalizer: %w", client.IgnoreNotFound(err))
	}
	return nil
}

// list sets the lines of the page in the list. Each page is a field owner, so that it removes its own line alone.
func (r *PageReconciler) list(ctx context.Context, page *pagev1.Page, lines map[string]string) error {
	list := coreac.ConfigMap(Listed, page.Namespace).WithData(lines)
	if err := r.Apply(ctx, list, client.FieldOwner("page-"+page.Name), client.ForceOwnership); err != nil {
		return fmt.Errorf("list the page: %w", err)
	}
	return nil
}

// report writes the status, if it has changed.
func (r *PageReconciler) report(ctx context.Context, page *pagev1.Page) error {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(page), deployment); client.IgnoreNotFound(err) != nil {
		return err
	}
	before := page.DeepCopyObject().(*pagev1.Page)
	page.Status.ObservedGeneration, page.Status.ReadyReplicas = page.Generation, deployment.Status.ReadyReplicas
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Starting", ObservedGeneration: page.Generation}
	if deployment.Status.ObservedGeneration == deployment.Generation && deployment.Status.ReadyReplicas == page.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "AllReplicasReady"
	}
	meta.SetStatusCondition(&page.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, page.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, page); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	return nil
}

func deploymentOf(page *pagev1.Page, owner *metaac.OwnerReferenceApplyConfiguration) *appsac.DeploymentApplyConfiguration {
	app := map[string]string{"page": page.Name}
	volume := coreac.Volume().WithName("content").WithConfigMap(coreac.ConfigMapVolumeSource().WithName(page.Name))
	container := coreac.Container().WithName("web").WithImage("nginx:alpine").
		WithVolumeMounts(coreac.VolumeMount().WithName("content").WithMountPath("/usr/share/nginx/html"))
	return appsac.Deployment(page.Name, page.Namespace).WithOwnerReferences(owner).WithSpec(appsac.DeploymentSpec().
		WithReplicas(page.Spec.Replicas).WithSelector(metaac.LabelSelector().WithMatchLabels(app)).
		WithTemplate(coreac.PodTemplateSpec().WithLabels(app).WithSpec(coreac.PodSpec().WithVolumes(volume).WithContainers(container))))
}
