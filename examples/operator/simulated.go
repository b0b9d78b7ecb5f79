// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !production

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

//go:embed config/crd.yaml
var crds []byte

//go:embed config/sample.yaml
var sample []byte

func init() { simulated = onSimulatedCluster }

// onSimulatedCluster runs the operator on an API server inside this process.
func onSimulatedCluster(ctx context.Context, opts manager.Options) error {
	definitions, err := envtest.ParseCRDs(bytes.NewReader(crds))
	if err != nil {
		return err
	}
	cluster := embedded.Options{CRDs: definitions, Files: map[string][]byte{"sample.yaml": sample}}
	return embedded.Run(ctx, cluster, func(ctx context.Context, c embedded.Cluster) error {
		fmt.Printf("The cluster is simulated. In another terminal:\n  export KUBECONFIG=%s\n  kubectl apply -f %s\n", c.Kubeconfig, filepath.Join(c.Dir, "sample.yaml"))
		opts.Config, opts.MetricsAddress, opts.HealthAddress = c.Config, "0", "0" // no ports
		return operate(ctx, opts)
	})
}
