// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"flag"
	"os"

	"github.com/flyball-dev/flyball/manager"
)

// A program whose replicas share its objects.
func ExampleSharding_replicas() {
	opts := manager.Options{
		Scheme: scheme,
		// The replicas of the Deployment divide the objects into 32 shards. The flag -shards sets another number.
		Sharding:       &manager.Sharding{Shards: 32, By: manager.UID},
		LeaderElection: &manager.LeaderElection{ID: "website.example.dev"},
	}
	opts.BindFlags(flag.CommandLine)
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))

	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}
