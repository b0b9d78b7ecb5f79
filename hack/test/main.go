// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command test runs every test of this repository. It is what `make test` calls.
//
//	go run ./hack/test                   every step
//	go run ./hack/test -list             the steps
//	go run ./hack/test plain tools       these steps and those they need
//	go run ./hack/test -fresh            no result from Go's cache
//
// It first checks what the tests need (a C compiler, git, room on the disk, a directory for
// temporary files) and downloads the modules, so that what is missing is named before
// minutes are spent. Then it runs the steps of steps.go, two at a time: the control plane
// is built while other tests run, and tests that wait for servers run beside those that
// compute. Output is that of the go command. When that is silent, a line every 30 seconds
// tells what runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/hack/internal/processgroup"
	"github.com/flyball-dev/flyball/internal/commandline"
)

// lanes is how many steps run at a time.
const lanes = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commandline.Exit("test", run(ctx, os.Args[1:], os.Stdout))
}

// run is main with explicit arguments and output.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the steps and run none")
	fresh := flags.Bool("fresh", false, "run each test anew, without results from Go's cache")
	seeds := flags.Int("seeds", 100, "how many `seeds` each sweep without the race detector runs")
	if err := commandline.Flags(flags, args); err != nil {
		return err
	}
	root, err := output(ctx, ".", "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return fmt.Errorf("find the root module: %w", err)
	}
	if *list {
		for _, s := range steps(packages{}, options{}) {
			fmt.Fprintln(out, s.name)
		}
		return nil
	}
	planned, err := choose(steps(packages{}, options{}), flags.Args())
	if err != nil {
		return err
	}
	if err := check(ctx, root); err != nil {
		return err
	}
	lines := newLines(out)
	defer lines.report(30 * time.Second)()
	if err := download(ctx, root, planned, lines); err != nil {
		return err
	}
	var found packages
	if slices.ContainsFunc(planned, func(s step) bool { return s.dir == "" }) {
		if found, err = find(ctx, root); err != nil {
			return err
		}
	}
	chosen, err := choose(steps(found, options{fresh: *fresh, seeds: *seeds}), flags.Args())
	if err != nil {
		return err
	}
	return runAll(ctx, root, chosen, lines)
}

// runAll runs the steps and prints how long each took, and which tests failed. The error
// names the steps that failed.
func runAll(ctx context.Context, root string, all []step, lines *lines) error {
	began := time.Now()
	results := schedule(all, lanes, func(s step) result {
		if ctx.Err() != nil {
			return result{skipped: true}
		}
		lines.started(s.name)
		defer lines.ended(s.name)
		return runStep(ctx, root, s, lines)
	})

	fmt.Fprintln(lines)
	table := tabwriter.NewWriter(lines, 0, 0, 2, ' ', 0)
	var failed []string
	for i, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\n", all[i].name, r.took.Round(time.Second), r.word())
		if r.err != nil {
			failed = append(failed, all[i].name)
		}
	}
	fmt.Fprintf(table, "all\t%s\t\n", time.Since(began).Round(time.Second))
	if err := table.Flush(); err != nil {
		return err
	}
	for i, r := range results {
		if len(r.failed) > 0 {
			fmt.Fprintf(lines, "failed in %s: %s\n", all[i].name, strings.Join(r.failed, " "))
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s; repeat them with: go run ./hack/test %s", strings.Join(failed, ", "), strings.Join(failed, " "))
	}
	return nil
}

// runStep runs the go command of s.
func runStep(ctx context.Context, root string, s step, to *lines) result {
	began := time.Now()
	out := &whole{lines: to}
	cmd := exec.CommandContext(ctx, "go", s.args...)
	cmd.Dir = filepath.Join(root, s.dir)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = out, out
	processgroup.Lead(cmd, 20*time.Second)
	defer processgroup.Kill(cmd)
	fmt.Fprintf(out, "# %s: %s\n", s.name, s)
	err := errors.Join(cmd.Run(), out.end())
	return result{took: time.Since(began), err: err, failed: out.failed}
}

// output returns what a command prints, without white space around it.
func output(ctx context.Context, dir string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var complaints strings.Builder
	cmd.Stderr = &complaints
	printed, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(string(printed)), nil
}
