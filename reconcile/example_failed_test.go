// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func (r *parentReconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	_, failure := r.children.Apply(ctx, site, deploymentFor(site))
	changed := kube.Copy(site)
	conditions := reconcile.ConditionsOf(changed, &changed.Status.Conditions, reconcile.Now(ctx))
	if failure != nil {
		conditions.Failed("Ready", failure)
	} else {
		conditions.True("Ready", "Applied", "the Deployment is as it should be")
	}
	written, err := r.client.PatchChanges(ctx, site, changed)
	if written && failure != nil {
		r.events.Eventf(site, nil, corev1.EventTypeWarning, "ChildFailed", "Apply", "%v", failure)
	}
	return reconcile.Result{}, errors.Join(failure, err) // logged, and retried with backoff
}

type parentReconciler struct {
	children *reconcile.ChildSet
	client   *client.Client
	events   manager.EventRecorder // mgr.Events("website")
}

// A child that cannot be applied shows in the status and in an Event.
func ExampleConditions_Failed() {
	var r parentReconciler // with the ChildSet, client and recorder of a manager
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	result, err := r.reconcile(context.Background(), site)
	fmt.Println(result, err)
}
