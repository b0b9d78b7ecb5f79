// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that each promise's test guards it. A mutant removes a
// guard. Its file is named after the promise and says what breaks, which tests
// must fail, which declaration changes, and how:
//
//	why: Done does not make a key ready that was added while held
//	test: TestQueue_KeyAddedWhileHeldRunsAgain_W3
//	in: (*state).done
//
//	- s.enqueue(n)
//	  return worked
//
// The change is a diff without positions, applied on the syntax tree. It names no file, and
// a package only where it must: moving or formatting code does not break it. The removed
// and the unchanged lines are one node of the tree, or consecutive nodes, and occur exactly
// once in the declaration.
//
// In a copy of the working tree the named tests must pass. Then each mutant is applied in
// turn, its test must fail, by an assertion, a panic or a timeout but not by a compile
// error, and the mutant is reverted.
//
//	go run ./hack/mutants                every mutant beside this file
//	go run ./hack/mutants 'W*' I3-*      those whose file name matches
//	go run ./hack/mutants -check         whether each can be applied, in a second
//	go run ./hack/mutants -compile       and whether its package then compiles, in minutes
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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/hack/internal/processgroup"
	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	limit := flag.Duration("limit", 2*time.Minute, "how long one test may run")
	check := flag.Bool("check", false, "only check whether the mutants can be applied")
	compile := flag.Bool("compile", false, "only check whether the mutants can be applied and compile")
	if err := commandline.Flags(flag.CommandLine, os.Args[1:]); err != nil {
		os.Exit(commandline.ExitCode(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *limit, *check, *compile, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, limit time.Duration, check, compile bool, globs []string) error {
	root, err := command(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	root = strings.TrimSpace(root)
	mutants, err := readAll(filepath.Join(root, "hack", "mutants"), globs)
	if err != nil {
		return err
	}
	t, err := load(root)
	if err != nil {
		return fmt.Errorf("parse the working tree: %w", err)
	}
	if err := applicable(t, mutants); check || err != nil {
		return err
	}
	if compile {
		return compilable(ctx, t, mutants)
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(ctx, root, dir); err != nil {
		return fmt.Errorf("copy the working tree: %w", err)
	}
	t.root = dir
	if err := passUnchanged(ctx, out, t, limit, mutants); err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	survived := 0
	for _, m := range mutants {
		began := time.Now()
		verdict, err := m.try(ctx, t, limit)
		if err != nil {
			return fmt.Errorf("try %s: %w", m.file, err)
		}
		if !verdict.killed {
			survived++
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f s\n", m.file, verdict, time.Since(began).Seconds())
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if survived > 0 {
		return fmt.Errorf("%d of %d mutants were not killed by their test", survived, len(mutants))
	}
	fmt.Fprintf(out, "all %d mutants were killed by their tests\n", len(mutants))
	return nil
}

// applicable returns an error that names what prevents mutants from being applied and
// tested.
func applicable(t *tree, mutants []mutant) error {
	var errs []error
	for _, m := range mutants {
		_, err := t.place(m)
		if err == nil {
			_, err = m.command(t)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.file, err))
		}
	}
	return errors.Join(errs...)
}

// compilable returns an error that names the mutants whose package does not compile.
func compilable(ctx context.Context, t *tree, mutants []mutant) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var errs []error
	for _, m := range mutants {
		if err := m.compile(ctx, t, dir); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.file, err))
		}
	}
	return errors.Join(errs...)
}

// passUnchanged runs the tests that the mutants name once, on the unchanged tree: those of
// the same packages with the same flags by one command.
func passUnchanged(ctx context.Context, out io.Writer, t *tree, limit time.Duration, mutants []mutant) error {
	groups, order := map[string][]mutant{}, []string{}
	for _, m := range mutants {
		group := strings.Join(append(t.holders(m.tests), m.flags...), " ")
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], m)
	}
	tests := 0
	for _, group := range order {
		all, n, err := union(groups[group])
		if err != nil {
			return err
		}
		args, err := all.command(t)
		if err != nil {
			return err
		}
		text, err := test(ctx, t.root, time.Duration(n)*limit, args)
		if err == nil && strings.Contains(text, "no tests to run") {
			err = errors.New("there is no such test")
		}
		if err != nil {
			return fmt.Errorf("a test does not pass without its mutant: go %s: %w\n%s", strings.Join(args, " "), err, text)
		}
		tests += n
	}
	fmt.Fprintf(out, "%d tests pass without a mutant\n", tests)
	return ctx.Err()
}

// union returns a mutant with the tests of all of them, and their number.
func union(mutants []mutant) (mutant, int, error) {
	var patterns []string
	for _, m := range mutants {
		patterns = append(patterns, m.tests.String())
	}
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	all := mutants[0]
	// The limit of one test is too short for all.
	all.flags = slices.DeleteFunc(slices.Clone(all.flags), func(flag string) bool { return strings.HasPrefix(flag, "-timeout") })
	var err error
	all.tests, err = regexp.Compile(strings.Join(patterns, "|"))
	return all, len(patterns), err
}

// copyTree copies the tracked and untracked files of the working tree, without ignored
// ones.
func copyTree(ctx context.Context, root, tree string) error {
	list, err := command(ctx, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return err
		}
		to := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program and returns both of its outputs combined.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	processgroup.Lead(cmd, time.Second)
	defer processgroup.Kill(cmd)
	// The copy is no repository; git must not find one above it.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, inModule) }) {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
