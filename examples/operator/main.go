// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Operator keeps a Deployment for each Frontend.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/resource/builtin"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", manager.Printable(err))
		os.Exit(1)
	}
}

// simulated runs the operator on a simulated cluster, with its objects in a directory. It is nil
// in images, which are built with -tags production.
var simulated func(ctx context.Context, opts manager.Options, data string) error

func run() error {
	opts, err := options()
	if err != nil {
		return err
	}
	opts.BindFlags(flag.CommandLine)
	simulate := flag.Bool("simulate", false,
		"run on a simulated cluster inside this process, which is the default without a kubeconfig")
	data := flag.String("data", "",
		"`directory` that keeps the objects of the simulated cluster (default: they are lost)")
	if err := manager.ParseFlags(flag.CommandLine, os.Args[1:]); err != nil {
		return err
	}
	_, err = manager.FindConfig(opts.Kubeconfig, opts.Context)
	switch alone := *simulate || errors.Is(err, manager.ErrNoCluster); {
	case alone && simulated != nil:
		return simulated(manager.SignalContext(), opts, *data)
	case *simulate:
		return errors.New("-simulate: this program was built with -tags production, without it")
	case *data != "":
		return errors.New("-data is for the simulated cluster: add -simulate")
	}
	return operate(manager.SignalContext(), opts)
}

// operate runs the operator until ctx ends.
func operate(ctx context.Context, opts manager.Options) error {
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// options are the defaults of the flags, and what tests start from.
func options() (manager.Options, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		builtin.AddToScheme(scheme),
		apiv1.AddToScheme(scheme),
	)
	return manager.Options{
		Scheme: scheme,
		// The flag -leader-elect turns it on.
		LeaderElection: &manager.LeaderElection{ID: "frontend-operator", Off: true},
	}, err
}
