// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func withCertificates(scheme *runtime.Scheme) (*manager.Manager, error) {
	return manager.New(manager.Options{
		Scheme: scheme,
		Webhooks: webhook.Options{Managed: &webhook.Managed{
			Service:    "website-webhooks",
			Validating: []string{"website"},
			Mutating:   []string{"website"},
			CRDs:       []string{"websites.example.flyball.dev"},
		}},
	})
}

// The manager creates the certificate, renews it and configures the API server to trust it.
func ExampleManaged() {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	mgr, err := withCertificates(scheme)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Register webhooks with mgr.Webhooks() here.
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
