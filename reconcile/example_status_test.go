// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

func (r *reconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	changed := kube.Copy(site) // a Lister's object is shared
	changed.Status.ObservedGeneration = site.Generation
	conditions := reconcile.ConditionsOf(changed, &changed.Status.Conditions, reconcile.Now(ctx))
	if d, err := r.deployments.Get(kube.KeyOf(site)); err != nil {
		conditions.Unknown("Ready", "DeploymentUnread", err.Error())
	} else if d.Status.ReadyReplicas == 0 {
		conditions.False("Ready", "ReplicasMissing", "no replica serves the page")
	} else {
		conditions.True("Ready", "Serving", "the page is served")
	}
	_, err := r.client.PatchChanges(ctx, site, changed)
	return reconcile.Result{}, err
}

type reconciler struct {
	deployments informer.Lister[*appsv1.Deployment]
	client      *client.Client
}

// A reconciler computes the status each time. The patch is sent only if something changed.
func ExampleConditionsOf() {
	var r reconciler // with the Lister and the client of a manager
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	result, err := r.reconcile(context.Background(), site)
	fmt.Println(result, err)
}
