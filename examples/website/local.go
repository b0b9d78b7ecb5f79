// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
)

//go:embed config/crd.yaml
var crd []byte

//go:embed config/sample.yaml
var sample []byte

// runLocal runs on a control plane of its own until ctx ends or the demo does.
func runLocal(ctx context.Context, opts manager.Options, demo bool) (err error) {
	if opts.Kubeconfig != "" {
		return errors.New("-local starts a control plane and -kubeconfig names another: leave one out")
	}
	crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
	if err != nil {
		return err
	}
	fmt.Println("starting a local control plane (the first time its binaries are built, which takes some minutes)")
	env, err := envtest.Start(ctx, envtest.Options{CRDObjects: crds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	opts.Config = env.Config()
	// Other programs may have the usual ports; who wants to look gives others.
	opts.MetricsAddress = cmp.Or(opts.MetricsAddress, "0")
	opts.HealthAddress = cmp.Or(opts.HealthAddress, "0")
	if demo {
		return runDemo(ctx, opts, bareControlPlane)
	}

	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := errors.Join(setup(mgr), bareControlPlane(mgr), mgr.Add(overseer(env.Err))); err != nil {
		return err
	}
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil {
		kubectl = env.KubectlPath()
	}
	file := filepath.Join(env.Dir(), "sample.yaml") // wherever the program was started
	if err := os.WriteFile(file, sample, 0o600); err != nil {
		return err
	}
	fmt.Printf("kubeconfig: %[1]s\ntry in another terminal:\n"+
		"  export KUBECONFIG=%[1]s\n"+
		"  %[2]s apply -f %[3]s\n"+
		"  %[2]s get websites,deployments -w\n"+
		"stop with ctrl-c\n", env.Kubeconfig(), kubectl, file)
	return mgr.Run(ctx)
}

// overseer ends the program when the fault of its control plane is not nil:
// nobody starts it again, and the operator would wait for it for ever.
type overseer func() error

func (overseer) Name() string { return "control plane" }

func (fault overseer) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if fault() != nil {
			return errors.New("it has ended, and all that was in it is gone; start anew") // Stop says why
		}
	}
}
