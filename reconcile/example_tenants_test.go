// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func setupByTenant(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	return mgr.Add(reconcile.For(websites, reconcileWebsite, reconcile.Options{
		FairBy: func(key reconcile.Key) string {
			tenant, _, _ := strings.Cut(key.Namespace, "-") // acme-prod and acme-test are one
			return tenant
		},
	}))
}

// Tenants with several namespaces take turns.
func ExampleOptions_tenants() {
	var mgr *manager.Manager // of your program
	if err := setupByTenant(mgr); err != nil {
		fmt.Println(err)
	}
}
