// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !production

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

//go:embed config/crd.yaml
var crds []byte

//go:embed config/sample.yaml
var sample []byte

func init() { simulated = onSimulatedCluster }

// onSimulatedCluster runs the operator on an API server inside this process, which keeps its
// objects in the directory data, or without one forgets them.
func onSimulatedCluster(ctx context.Context, opts manager.Options, data string) error {
	definitions, err := envtest.ParseCRDs(bytes.NewReader(crds))
	if err != nil {
		return err
	}
	cluster := embedded.Options{
		Name: "frontend-operator", Data: data, CRDs: definitions,
		Files: map[string][]byte{"sample.yaml": sample},
	}
	return embedded.Run(ctx, cluster, func(ctx context.Context, c embedded.Cluster) error {
		fmt.Printf("The cluster is simulated, at %s. In another terminal:\n%s",
			c.Config.Host, c.Commands("sample.yaml", "frontends"))
		opts.Config = c.Config
		// Free ports on this machine, unless the flags name others. The log has them.
		opts.MetricsAddress = cmp.Or(opts.MetricsAddress, "127.0.0.1:0")
		opts.HealthAddress = cmp.Or(opts.HealthAddress, "127.0.0.1:0")
		if opts.LogLevel == "" {
			opts.Verbosity = max(opts.Verbosity, 2) // a line for each reconcile
		}
		return operate(ctx, opts)
	})
}
