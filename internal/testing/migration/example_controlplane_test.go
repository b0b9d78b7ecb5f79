// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
)

func startControlPlane(ctx context.Context) (stop func() error, err error) {
	env, err := envtest.Start(ctx, envtest.Options{CRDs: []string{"config/crd"}})
	if err != nil {
		return nil, err
	}
	return env.Stop, useConfig(env.Config())
}

func useConfig(config *rest.Config) error {
	fmt.Println(config.Host)
	return nil
}

func Example_controlPlane() {
	stop, err := startControlPlane(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := stop(); err != nil {
		fmt.Println(err)
	}
}
