// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane finds the binaries of a control plane for tests, or builds them into the user's cache, and prints
// the directory that has them.
//
//	go run ./hack/controlplane                          the directory
//	eval "$(go run ./hack/controlplane -print-env)"     KUBEBUILDER_ASSETS for this shell and other tools
//	go run ./hack/controlplane -oldest                  the oldest kube-apiserver that docs/support.md names,
//	                                                    with the newest etcd and kubectl
//	go run ./hack/controlplane -clean                   removes what was built, and what guests have copied
//	go run ./hack/controlplane -write-recipe DIR        the modules it builds from, to change a version in and tidy
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if code := commandline.ExitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(code)
	}
}

// run is main with explicit arguments and outputs.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.SetOutput(progress)
	printEnv := flags.Bool("print-env", false, "print a line that sets "+envtest.AssetsVariable+" in a shell")
	oldest := flags.Bool("oldest", false, "with the oldest kube-apiserver that is supported, which is built once")
	recipe := flags.String("write-recipe", "", "write the modules that the binaries are built from into this `directory`, and build nothing")
	clean := flags.Bool("clean", false, "remove the binaries, and what guests have copied, from the user's cache")
	if err := commandline.Parse(flags, args); err != nil {
		return err
	}
	if *clean {
		return removeCaches(out)
	}
	if *recipe != "" {
		return envtest.WriteRecipe(*recipe)
	}
	dir, err := envtest.Binaries(ctx, envtest.BinariesOptions{Output: progress})
	if err == nil && *oldest {
		dir, err = buildOldest(ctx, dir, progress)
	}
	if err != nil {
		return err
	}
	if *printEnv {
		dir = fmt.Sprintf("export %s='%s'", envtest.AssetsVariable, strings.ReplaceAll(dir, "'", `'\''`))
	}
	_, err = fmt.Fprintln(out, dir)
	return err
}

func removeCaches(out io.Writer) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	for _, part := range []string{"controlplane", "guests"} {
		dir := filepath.Join(cache, "flyball", part)
		fmt.Fprintln(out, "remove", dir)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
