// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that each promise's test guards it. A mutant is a patch
// of one hunk that removes the guard:
//
//	# promise: W3
//	# test: go test ./workqueue -run 'TestQueue_KeyAddedWhileHeldRunsAgain_W3' -count=1
//	# why: what the hunk takes away
//	diff --git …
//
// In a copy of the working tree the named tests must pass. Then each patch is
// applied in turn, its test must fail, by an assertion, a panic or a timeout
// but not by failing to compile, and the patch is taken back.
//
//	go run ./hack/mutants                every patch beside this file
//	go run ./hack/mutants 'W*' I3-*      those whose file name matches
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
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	limit := flag.Duration("limit", 2*time.Minute, "how long one test may run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, limit time.Duration, globs []string) error {
	root, err := command(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	root = strings.TrimSpace(root)
	mutants, err := readAll(filepath.Join(root, "hack", "mutants"), globs)
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if err := copyTree(ctx, root, tree); err != nil {
		return fmt.Errorf("copy the working tree: %w", err)
	}
	if err := passUnpatched(ctx, out, tree, limit, mutants); err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	survived := 0
	for _, m := range mutants {
		began := time.Now()
		verdict, err := m.try(ctx, tree, limit)
		if err != nil {
			return fmt.Errorf("try %s: %w", m.file, err)
		}
		if !verdict.killed {
			survived++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1f s\n", m.promise, m.file, verdict, time.Since(began).Seconds())
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

// passUnpatched runs each test that the mutants name once, on the tree as it is.
func passUnpatched(ctx context.Context, out io.Writer, tree string, limit time.Duration, mutants []mutant) error {
	done := map[string]bool{}
	for _, m := range mutants {
		if done[m.test] {
			continue
		}
		done[m.test] = true
		text, err := test(ctx, tree, limit, m.test)
		if err == nil && strings.Contains(text, "no tests to run") {
			err = errors.New("there is no such test")
		}
		if err != nil {
			return fmt.Errorf("%s names a test that does not pass without it: %s: %w\n%s", m.file, m.test, err, text)
		}
	}
	fmt.Fprintf(out, "%d tests pass without a mutant\n", len(done))
	return ctx.Err()
}

// copyTree copies the files that git knows or would add, as they are now.
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

// command runs a program and returns what it prints, both outputs in one.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	// The copy is no repository; git must not find one above it.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
