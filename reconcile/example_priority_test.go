// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupWithPriorities(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	return mgr.Add(reconcile.For(websites, reconcileWebsite, reconcile.Options{
		PrioritizeBy: func(key reconcile.Key, cause source.Cause) int {
			if key.Namespace == "kube-system" {
				return 50
			}
			return reconcile.DefaultPriority(cause) // -100 for the first list and resyncs, else 0
		},
	}))
}

func reconcileWebsite(_ context.Context, site *webv1.Website) (reconcile.Result, error) {
	fmt.Println("reconcile", site.Name)
	return reconcile.Result{}, nil
}

// Keys of kube-system come first, those of the first list last.
func ExampleOptions_priorities() {
	var mgr *manager.Manager // of your program
	if err := setupWithPriorities(mgr); err != nil {
		fmt.Println(err)
	}
}
