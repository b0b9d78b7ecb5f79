// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func runController(ctx context.Context) error {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		return err
	}
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	lister := deployments.Lister()

	sync := func(ctx context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
		others, err := lister.List(informer.QueryOptions{Namespace: d.Namespace, Selector: labels.SelectorFromSet(d.Labels)})
		if err != nil {
			return reconcile.Result{}, err
		}
		changed := kube.Copy(d)
		changed.Annotations = map[string]string{"example.dev/peers": fmt.Sprint(len(others))}
		_, err = mgr.Client().PatchChanges(ctx, d, changed)
		return reconcile.Result{}, err
	}
	if err := mgr.Add(reconcile.For(deployments, sync, reconcile.Options{})); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

func Example_clientGo() {
	if err := runController(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
