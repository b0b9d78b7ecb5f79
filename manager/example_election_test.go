// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"flag"
	"os"

	"github.com/flyball-dev/flyball/manager"
)

// Replicas elect a leader if the flag -leader-elect is set. See the package's example for setup.
func ExampleLeaderElection() {
	opts := manager.Options{
		Scheme:         scheme,
		LeaderElection: &manager.LeaderElection{ID: "website.example.dev", Off: true},
	}
	opts.BindFlags(flag.CommandLine)
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))

	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}
