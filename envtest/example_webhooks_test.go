// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func startWithWebhooks(ctx context.Context, scheme *runtime.Scheme) (*envtest.Environment, *manager.Manager, error) {
	env, err := envtest.Start(ctx, envtest.Options{
		CRDs:     []string{"config/crd.yaml"},
		Webhooks: []string{"deploy/webhooks.yaml"},
	})
	if err != nil {
		return nil, nil, err
	}
	mgr, err := manager.New(manager.Options{
		Config: env.Config(),
		Scheme: scheme,
		Webhooks: webhook.Options{
			Address: env.Webhooks().Address(),
			CertDir: env.Webhooks().CertDir,
		},
	})
	return env, mgr, err
}

// The API server of the test calls the webhooks that the manager of the test serves.
func ExampleOptions_webhooks() {
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env, mgr, err := startWithWebhooks(ctx, scheme)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Register webhooks with mgr.Webhooks() here, run mgr, and write objects to env.Config().
	fmt.Println(env.Config().Host, mgr.Webhooks().Check(ctx))
}
