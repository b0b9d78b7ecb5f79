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
	"path/filepath"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

//go:embed deploy/namespace.yaml
var namespace []byte

//go:embed deploy/webhooks.yaml
var hookConfigurations []byte

const embeddable = true

// runEmbedded runs on a simulated API server inside this process. Images are built with
// -tags production, which leaves it out.
func runEmbedded(ctx context.Context, opts manager.Options, demo bool, data string) error {
	crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
	if err != nil {
		return err
	}
	cluster := embedded.Options{
		CRDs: crds, Files: map[string][]byte{sampleFile: sample}, Data: data,
		Manifests: bytes.Join([][]byte{namespace, hookConfigurations}, []byte("\n---\n")),
	}
	if !demo {
		cluster.Name = "website"
	}
	if certificate := opts.Webhooks.Managed; certificate != nil { // -webhooks
		opts.Webhooks.Address = cmp.Or(opts.Webhooks.Address, "127.0.0.1:9443")
		opts.Webhooks.DrainDelay = -1 // there is no Service whose clients must learn of the end
		certificate.Namespace = "website"
		certificate.CRDs = nil // config/crd.yaml has one version, which is not converted
		cluster.WebhookAddress = opts.Webhooks.Address
	}
	return embedded.Run(ctx, cluster, func(ctx context.Context, c embedded.Cluster) error {
		fmt.Printf("no cluster is configured, so this program simulates one: its API server is %s\n", c.Config.Host)
		opts.Config = c.Config
		return tryOut(ctx, opts, demo, trial{kubeconfig: c.Kubeconfig, sample: filepath.Join(c.Dir, sampleFile)})
	})
}
