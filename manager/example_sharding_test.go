// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"flag"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/manager"
)

// A program whose objects are divided by a label among its Deployments, each started with
// another -shard.
func ExampleSharding() {
	opts := manager.Options{
		Scheme: scheme,
		// The flag -shard names the shard of this process.
		Sharding:       &manager.Sharding{Label: "website.example.dev/shard", Kinds: []runtime.Object{&appsv1.Deployment{}}},
		LeaderElection: &manager.LeaderElection{ID: "website.example.dev"},
	}
	opts.BindFlags(flag.CommandLine)
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))

	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}
