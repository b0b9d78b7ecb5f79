// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// A program whose objects are divided by a label among its Deployments, each started with
// another -shard.
func ExampleSharding() {
	opts := manager.Options{
		Scheme:         scheme,
		Sharding:       &manager.Sharding{Label: "website.example.dev/shard"}, // the flag -shard names this process's
		LeaderElection: &manager.LeaderElection{ID: "website.example.dev"},
	}
	mgr, err := manager.New(opts)
	exitOn(err)
	websites := informer.For[*appsv1.Deployment](mgr.Informers(), mgr.Shard())
	exitOn(mgr.Add(reconcile.For(websites, reconcileShard, reconcile.Options{})))
	exitOn(mgr.Run(manager.SignalContext()))
}

func reconcileShard(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}
