// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Website is the template operator: it serves the page of each Website by a
// ConfigMap, a Deployment and a Service.
//
// It runs on the cluster of the kubeconfig, or with -local on a control plane of
// its own; README.md says how to begin.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	"github.com/flyball-dev/flyball/manager"
)

func main() {
	var opts manager.Options
	opts.BindFlags(flag.CommandLine)
	local := flag.Bool("local", false, "start a local control plane (a real etcd and kube-apiserver) and run against it")
	demo := flag.Bool("demo", false, "apply a sample, follow it, change it, delete it, and exit; on a real cluster only with an explicit -kubeconfig")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() > 0 {
		exitOn(fmt.Errorf("argument %q is none of mine; flags begin with -, see -help", flag.Arg(0)))
	}

	exitOn(clientscheme.AddToScheme(scheme))
	exitOn(webv1.AddToScheme(scheme))
	opts.Scheme = scheme
	exitOn(run(manager.SignalContext(), opts, *local, *demo))
}

var scheme = runtime.NewScheme()

func run(ctx context.Context, opts manager.Options, local, demo bool) error {
	switch {
	case local:
		return runLocal(ctx, opts, demo)
	case demo && opts.Kubeconfig == "":
		return errors.New("-demo writes to a cluster: say which by -kubeconfig, or try -local -demo")
	case demo:
		return runDemo(ctx, opts, nil)
	}
	mgr, err := manager.New(opts)
	if err != nil {
		return fmt.Errorf("%w\n(no cluster at hand? -local starts a control plane to try with)", err)
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `Website serves the page of each Website object by a ConfigMap, a Deployment and a Service.

  website                 runs on the cluster of the kubeconfig, or on that of its Pod
  website -local          runs on a control plane of its own, for trying out with kubectl
  website -local -demo    walks through a sample and exits

Flags:
`)
	flag.PrintDefaults()
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}
