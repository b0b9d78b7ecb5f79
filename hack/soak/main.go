// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command soak runs informers for minutes against a real API server that is killed, whose
// history is compacted and whose network is cut, at random, while others write. Then it
// compares what each informer holds, and what each handler received, with a fresh list, and
// looks for leaks.
//
//	go run ./hack/soak -for 5m               a random seed, which it prints
//	go run ./hack/soak -for 5m -seed 42 -v   the troubles of seed 42, with the informers' log
//
// The seed determines the choices, not their timing: that depends on the real server.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if code := commandline.ExitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(code)
	}
}

// command is main with explicit arguments and outputs.
func command(ctx context.Context, args []string, out, problems io.Writer) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(problems)
	opts := Options{Output: problems}
	flags.DurationVar(&opts.For, "for", 5*time.Minute, "how long to inject faults")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of the faults; 0: a random one")
	verbose := flags.Bool("v", false, "show what happens and what the informers log")
	if err := commandline.Parse(flags, args); err != nil {
		return err
	}
	for opts.Seed == 0 {
		opts.Seed = rand.Uint64N(1_000_000)
	}
	if *verbose {
		opts.Logger = funcr.New(func(_, line string) { fmt.Fprintln(problems, line) }, funcr.Options{LogTimestamp: true})
	} else {
		opts.Logger = logr.Discard()
	}
	report, err := Soak(ctx, opts)
	fmt.Fprintln(out, report)
	return err
}
