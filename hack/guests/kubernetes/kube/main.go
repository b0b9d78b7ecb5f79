// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command kube is kube-controller-manager and kube-scheduler in one program: its first
// argument selects one. The test builds it with an overlay that puts flyball's informers
// underneath; without the overlay, it runs on client-go's.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "kube: say controller-manager or scheduler")
		os.Exit(2)
	}
	part := os.Args[1]
	os.Args = os.Args[1:]
	switch part {
	case "controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	}
	fmt.Fprintf(os.Stderr, "kube: %q is neither controller-manager nor scheduler\n", part)
	os.Exit(2)
}
