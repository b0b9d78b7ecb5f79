// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func setupByNamespace(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	return mgr.Add(reconcile.For(websites, reconcileWebsite, reconcile.Options{FairBy: reconcile.ByNamespace}))
}

// Namespaces take turns.
func ExampleByNamespace() {
	var mgr *manager.Manager // of your program
	if err := setupByNamespace(mgr); err != nil {
		fmt.Println(err)
	}
}
