// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Operator keeps a Deployment for each Frontend.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/manager"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", manager.Printable(err))
		os.Exit(1)
	}
}

func run() error {
	opts, err := options()
	if err != nil {
		return err
	}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Run(manager.SignalContext())
}

// options are the defaults of the flags, and what tests start from.
func options() (manager.Options, error) {
	scheme := runtime.NewScheme()
	return manager.Options{
		Scheme: scheme,
		// The flag -leader-elect turns it on.
		LeaderElection: &manager.LeaderElection{ID: "frontend-operator", Off: true},
	}, errors.Join(clientscheme.AddToScheme(scheme), apiv1.AddToScheme(scheme))
}
