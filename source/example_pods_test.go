// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupDebounced(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	pods := informer.For[*corev1.Pod](mgr.Informers())
	c := reconcile.For(websites, reconcileWebsite, reconcile.Options{}) // a changed Website is not held back
	c.Watch(source.Debounce(source.OwnedByAny(pods, websites), time.Second, 10*time.Second))
	return mgr.Add(c)
}

func reconcileWebsite(_ context.Context, site *webv1.Website) (reconcile.Result, error) {
	fmt.Println("reconcile", site.Name)
	return reconcile.Result{}, nil
}

// Pods name their owner often, and only their final state matters.
func ExampleDebounce_pods() {
	var mgr *manager.Manager // of your program
	if err := setupDebounced(mgr); err != nil {
		fmt.Println(err)
	}
}
