// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Website shows every part of Flyball in one operator: it serves the page of each Website
// with a ConfigMap, a Deployment and a Service. examples/operator is the template to begin with.
//
// It runs on the cluster of the kubeconfig; without one, on an API server inside the
// process; with -local on its own control plane. README.md says how to begin.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	webv1beta1 "github.com/flyball-dev/flyball/examples/website/api/v1beta1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/resource/builtin"
)

func main() {
	// Off until -leader-elect says otherwise.
	opts := manager.Options{LeaderElection: &manager.LeaderElection{ID: "website.example.flyball.dev", Off: true}}
	opts.BindFlags(flag.CommandLine)
	local := flag.Bool("local", false, "start a local control plane (a real etcd and kube-apiserver) and run against it")
	demo := flag.Bool("demo", false, "apply a sample, follow it, change it, delete it, and exit; on a real cluster only with an explicit -kubeconfig")
	data := flag.String("data", "", "`directory` that keeps the objects of the simulated API server from one start to the next (default: they are lost when it stops)")
	webhooks := flag.Bool("webhooks", false, "default and validate Websites, and convert those of v1beta1; the API server must reach this process (see docs/webhooks.md)")
	trace := flag.String("trace", "", "`file` to write OpenTelemetry's spans to, from each event to the requests that follow from it; - is standard error (default: no tracing)")
	flag.Usage = usage
	exitOn(manager.ParseFlags(flag.CommandLine, os.Args[1:]))

	exitOn(builtin.AddToScheme(scheme))
	exitOn(webv1.AddToScheme(scheme))
	exitOn(webv1beta1.AddToScheme(scheme))
	opts.Scheme = scheme
	opts.MetricsServing.Console, opts.MetricsServing.Actions = console.Handler, true
	if *webhooks {
		if *local || *demo {
			exitOn(errors.New("-webhooks are for a cluster whose API server reaches this process, as the simulated one does: leave out -local and -demo"))
		}
		opts.Webhooks = webhookOptions(opts.Webhooks)
	}
	finish := func() error { return nil }
	if *trace != "" {
		var err error
		finish, err = traceTo(&opts, *trace)
		exitOn(err)
	}
	err := run(manager.SignalContext(), opts, *local, *demo, *webhooks, *data)
	exitOn(errors.Join(err, finish()))
}

var scheme = runtime.NewScheme()

func run(ctx context.Context, opts manager.Options, local, demo, webhooks bool, data string) error {
	_, err := manager.FindConfig(opts.Kubeconfig, opts.Context)
	switch alone := !local && errors.Is(err, manager.ErrNoCluster); {
	case data != "" && !alone:
		return errors.New("-data keeps what the simulated API server has, and there is another cluster here: leave out -data, or -local, -kubeconfig, KUBECONFIG and ~/.kube/config")
	case local:
		return runLocal(ctx, opts, demo)
	case alone && embeddable:
		return runEmbedded(ctx, opts, demo, data)
	case demo && opts.Kubeconfig == "":
		return errors.New("-demo writes to a cluster: say which by -kubeconfig, or try -local -demo")
	case err != nil:
		return fmt.Errorf("%w\n(no cluster at hand? -local starts a control plane to try with)", err)
	case demo:
		return runDemo(ctx, opts, nil)
	}
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	if webhooks {
		addWebhooks(mgr)
	}
	return mgr.Run(ctx)
}

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `Website serves the page of each Website object by a ConfigMap, a Deployment and a Service.

  website                 runs on the cluster of the kubeconfig, or on that of its Pod;
                          where there is neither, on an API server that it simulates
  website -demo           walks through a sample there and exits
  website -local [-demo]  the same on a real control plane of its own

Flags:
`)
	flag.PrintDefaults()
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", manager.Printable(err))
		os.Exit(1)
	}
}
