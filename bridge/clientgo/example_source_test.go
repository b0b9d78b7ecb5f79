// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/informers"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func watchDeployments(c *reconcile.Controller[reconcile.Key], shared informers.SharedInformerFactory) {
	deployments := shared.Apps().V1().Deployments().Informer()
	c.Watch(clientgo.NewSource("Deployment", deployments, source.Self))
}

// The controller moves before its informers do.
func ExampleNewSource() {
	var shared informers.SharedInformerFactory // client-go's
	c := reconcile.New("deployment", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		d, err := shared.Apps().V1().Deployments().Lister().Deployments(key.Namespace).Get(key.Name)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		fmt.Println(d.Name, d.Status.ReadyReplicas)
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	watchDeployments(c, shared)
	if err := c.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
}
