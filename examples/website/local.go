// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
)

// runLocal runs on its own control plane until ctx ends or the demo does.
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
	file := filepath.Join(env.Dir(), sampleFile) // wherever the program was started
	if err := os.WriteFile(file, sample, 0o600); err != nil {
		return err
	}
	return tryOut(ctx, opts, demo, trial{
		kubeconfig: env.Kubeconfig(), sample: file, kubectl: env.KubectlPath(),
		extra: func(mgr *manager.Manager) error {
			return errors.Join(bareControlPlane(mgr), mgr.Add(overseer(env.Err)))
		},
	})
}

// overseer ends the program when its control plane fails: the control plane is not
// restarted, and the operator would wait for it indefinitely.
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
			return errors.New("it has ended, and its contents are lost; start it again") // Stop returns the reason
		}
	}
}
