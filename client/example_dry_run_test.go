// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
)

func rehearse(ctx context.Context, mgr *manager.Manager, site *webv1.Website) error {
	c := mgr.Client().With(client.DryRun{}, client.InNamespace(site.Namespace), client.FieldOwner("website"))
	d := deploymentFor(site)
	if err := c.Apply(ctx, d); err != nil {
		return err // what validation or a webhook has against it, or another owner
	}
	fmt.Println("replicas would be", *d.Spec.Replicas)
	return nil
}

func deploymentFor(site *webv1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: site.Spec.Replicas},
	}
}

// With returns a view of a client that has default options for every call.
func ExampleClient_With() {
	var mgr *manager.Manager // of your program
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	if err := rehearse(context.Background(), mgr, site); err != nil {
		fmt.Println(err)
	}
}
