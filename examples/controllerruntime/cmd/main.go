// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command cmd is an operator of controller-runtime on Flyball's informers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"

	pagev1 "github.com/flyball-dev/flyball/examples/controllerruntime/api/v1"
	"github.com/flyball-dev/flyball/examples/controllerruntime/internal/controller"
)

const electionID = "pages.example.flyball.dev"

func main() {
	opts := ctrl.Options{LeaderElectionID: electionID}
	flag.BoolVar(&opts.LeaderElection, "leader-elect", false, "enable leader election, so that one replica works at a time")
	flag.StringVar(&opts.Metrics.BindAddress, "metrics-bind-address", ":8080", "`address` that serves the metrics")
	flag.StringVar(&opts.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "`address` that serves the probes")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q is not a flag; -help lists the flags\n", flag.Arg(0))
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), opts); err != nil {
		ctrl.Log.Error(err, "the operator ends")
		os.Exit(1)
	}
}

// run blocks until ctx ends.
func run(ctx context.Context, cfg *rest.Config, opts ctrl.Options) error {
	opts.Scheme = scheme()
	mgr, err := ctrl.NewManager(cfg, bridge.Options(opts)) // the one line
	if err != nil {
		return err
	}
	if err := (&controller.PageReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := bridge.AddHealthz(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// scheme has the kinds of Kubernetes and Page.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, pagev1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // a kind is registered twice
		}
	}
	return s
}
