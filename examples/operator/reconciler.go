// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

// setup adds the controllers to mgr. main and the tests call it.
func setup(mgr *manager.Manager) error {
	frontends := informer.For[*apiv1.Frontend](mgr.Informers())
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	kinds := []reconcile.ChildKind{reconcile.Children(deployments)}
	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), kinds, reconcile.ChildSetOptions{
		FieldOwner: "frontend-operator",
		// Ask the server before a child is made: the cache may not know yet that the Frontend is
		// gone, and nothing would delete the child.
		AskParent: true,
	})
	r := &reconciler{client: mgr.Client(), children: children, events: mgr.Events("frontend-operator")}
	// The status is written here, so a change of it alone starts no reconcile.
	c := reconcile.For(frontends, r.reconcile, reconcile.Options{
		Predicate:     source.SpecChanged,
		OmitOwnEvents: true, // remove it if a reconcile returns after one step of several
	})
	c.Watch(source.Owned(deployments, frontends))
	return mgr.Add(c)
}

type reconciler struct {
	client   *client.Client
	children *reconcile.ChildSet
	events   manager.EventRecorder
}

// reconcile applies the children of a Frontend and reports their state in its status.
// The Frontend is shared with other readers: do not modify it.
func (r *reconciler) reconcile(
	ctx context.Context, frontend *apiv1.Frontend,
) (reconcile.Result, error) {
	if frontend.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // the garbage collector deletes the children
	}
	deployment := deploymentFor(frontend)
	_, failure := r.children.Apply(ctx, frontend, deployment)
	// Apply has set each child to what the server stored, including its status.
	updated := kube.Copy(frontend)
	setStatus(ctx, updated, deployment, failure)
	changed, err := r.client.PatchChanges(ctx, frontend, updated) // no request if nothing differs
	if changed && failure != nil {
		r.events.Eventf(frontend, nil, corev1.EventTypeWarning, "ChildFailed", "Apply", "%v", failure)
	}
	return reconcile.Result{}, errors.Join(failure, err) // logged, and retried with backoff
}

func deploymentFor(frontend *apiv1.Frontend) *appsv1.Deployment {
	labels := labelsFor(frontend, "deployment")
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: frontend.Namespace, Name: frontend.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(frontend.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "frontend", Image: frontend.Spec.Image}},
				},
			},
		},
	}
}

func labelsFor(frontend *apiv1.Frontend, component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":      "frontend",
		"app.kubernetes.io/instance":  reconcile.LabelValue(frontend.Name),
		"app.kubernetes.io/component": component,
	}
}

// setStatus sets the status of frontend to what its Deployment says or, if its children could
// not be applied, to the failure.
func setStatus(
	ctx context.Context, frontend *apiv1.Frontend, deployment *appsv1.Deployment, failure error,
) {
	conditions := reconcile.ConditionsOf(frontend, &frontend.Status.Conditions, reconcile.Now(ctx))
	if failure != nil {
		conditions.Failed("Ready", failure)
		return
	}
	frontend.Status.ObservedGeneration = frontend.Generation
	frontend.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	frontend.Status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	ready, updated := deployment.Status.ReadyReplicas, deployment.Status.UpdatedReplicas
	message := fmt.Sprintf("%d of %d replicas are ready", min(ready, updated), frontend.Spec.Replicas)
	if deployment.Status.ObservedGeneration == deployment.Generation &&
		min(ready, updated) >= frontend.Spec.Replicas {
		conditions.True("Ready", "Available", message)
	} else {
		conditions.False("Ready", "Progressing", message)
	}
}
