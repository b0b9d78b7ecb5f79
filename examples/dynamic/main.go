// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Dynamic keeps an inventory of kinds that it discovers at run time: in each namespace, a
// ConfigMap "inventory" has the number of objects of each kind. It counts the resources in
// the flag -resources, which discovery finds, and the kind of every
// CustomResourceDefinition with the label
//
//	example.flyball.dev/inventory: "true"
//
// including definitions that are created or labelled while it runs.
//
// The lesson: discovery, metadata-only informers that start and stop at run time,
// unstructured objects and their conversion from and to Go types, and client-go's dynamic
// client beside flyball's informers.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/flyball-dev/flyball/manager"
)

func main() {
	var opts manager.Options
	opts.BindFlags(flag.CommandLine)
	resources := flag.String("resources", "deployments.apps", "built-in resources to count, as kubectl names them, separated by commas")
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))
	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr, strings.Split(*resources, ",")))
	exitOn(mgr.Run(manager.SignalContext()))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamic:", manager.Printable(err))
		os.Exit(1)
	}
}
