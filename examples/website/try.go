// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"

	_ "embed"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
)

//go:embed config/crd.yaml
var crd []byte

//go:embed config/sample.yaml
var sample []byte

const sampleFile = "sample.yaml"

// trial is a cluster for trying out the operator.
type trial struct {
	kubeconfig, sample string // files
	kubectl            string // empty: the one in the PATH
	// extra adds what the cluster lacks, or a watch over it. nil: nothing.
	extra func(*manager.Manager) error
}

// tryOut runs the operator on a trial until ctx ends, or runs the demo.
func tryOut(ctx context.Context, opts manager.Options, demo bool, on trial) error {
	if demo {
		opts.MetricsAddress = cmp.Or(opts.MetricsAddress, "0")
		opts.HealthAddress = cmp.Or(opts.HealthAddress, "0")
		return runDemo(ctx, opts, on.extra)
	}
	// Other programs may use the default ports. The log has these.
	opts.MetricsAddress = cmp.Or(opts.MetricsAddress, "127.0.0.1:0")
	opts.HealthAddress = cmp.Or(opts.HealthAddress, "127.0.0.1:0")
	if opts.LogLevel == "" {
		opts.Verbosity = max(opts.Verbosity, 2) // a line for each reconcile
	}
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	if opts.Webhooks.Managed != nil {
		addWebhooks(mgr)
	}
	if on.extra != nil {
		if err := on.extra(mgr); err != nil {
			return err
		}
	}
	fmt.Print(on.usage())
	// The servers listen before the controllers start.
	shows := mgr.Add(manager.RunnableFunc(func(context.Context) error {
		if addr := mgr.MetricsAddr(); addr != "" {
			fmt.Printf("console: http://%s%s\n", addr, console.Path)
		}
		return nil
	}))
	if shows != nil {
		return shows
	}
	return mgr.Run(ctx)
}

// usage returns what to type beside the running operator.
func (on trial) usage() string {
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil && on.kubectl != "" {
		kubectl = on.kubectl
	}
	return fmt.Sprintf("kubeconfig: %s\ntry in another terminal:\n"+
		"  export KUBECONFIG=%s\n"+
		"  %[3]s apply -f %[4]s\n"+
		"  %[3]s get websites -w\n"+
		"stop with ctrl-c\n", on.kubeconfig, word(on.kubeconfig), word(kubectl), word(on.sample))
}

// word quotes text for a shell.
func word(text string) string {
	if !strings.ContainsAny(text, " \t\n'\"`$&|;<>()*?[]#~!{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
