// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Configmapsync copies ConfigMaps to other namespaces and keeps the copies equal to the
// original. It copies a ConfigMap with the label
//
//	example.flyball.dev/sync: "true"
//
// to the namespaces in its annotation example.flyball.dev/namespaces, separated by commas,
// or without the annotation to all.
//
// The lesson: two scopes of one kind, an index, and events of another kind
// (Namespace) that concern every key.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/flyball-dev/flyball/manager"
)

func main() {
	var opts manager.Options
	opts.BindFlags(flag.CommandLine)
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))
	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "configmapsync:", manager.Printable(err))
		os.Exit(1)
	}
}
