// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Room on the disk, in MB: for everything with empty caches, and for a build of what has
// changed where the control plane and the modules' packages are built already.
const (
	roomEmpty = 8000
	roomBuilt = 1500
)

// check names what the tests need and the machine lacks, all at once.
func check(ctx context.Context, root string) error {
	listed, err := output(ctx, root, "go", "env", "GOCACHE", "GOMODCACHE", "CC")
	if err != nil {
		return fmt.Errorf("ask Go for its caches: %w", err)
	}
	env := strings.Split(listed, "\n")
	if len(env) != 3 {
		return fmt.Errorf("go env GOCACHE GOMODCACHE CC printed %q, want three lines", listed)
	}
	err = errors.Join(checkGit(ctx, root), checkTemporary(ctx, env[2]), checkRoom(env[0], env[1]))
	if err != nil {
		return fmt.Errorf("this machine lacks what the tests need:\n%w", err)
	}
	return nil
}

func checkGit(ctx context.Context, root string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("- git: tests of releases and images make repositories. Install it (package git)")
	}
	if _, err := output(ctx, root, "git", "rev-parse", "HEAD"); err != nil {
		return fmt.Errorf("- a git repository: tests ask git which files are part of it. Clone it instead of unpacking an archive (%w)", err)
	}
	return nil
}

// checkTemporary builds a C program in the directory for temporary files.
func checkTemporary(ctx context.Context, compiler string) error {
	dir, err := os.MkdirTemp("", "flyball-test-")
	if err != nil {
		return fmt.Errorf("- a directory for temporary files: set TMPDIR to one that can be written (%w)", err)
	}
	defer os.RemoveAll(dir)
	words := strings.Fields(compiler)
	if len(words) == 0 {
		words = []string{"cc"}
	}
	const advice = "the race detector needs it. Install gcc or clang with the headers of the C library (packages gcc and libc6-dev, or build-essential), or name yours in CC"
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Errorf("- a C compiler: %s is not there; %s", words[0], advice)
	}
	program := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(program, []byte("#include <stdlib.h>\nint main(void) { return 0; }\n"), 0o600); err != nil {
		return fmt.Errorf("- a directory for temporary files: set TMPDIR to one that can be written (%w)", err)
	}
	args := append(words[1:], "-o", filepath.Join(dir, "empty"), program)
	if _, err := output(ctx, dir, words[0], args...); err != nil {
		return fmt.Errorf("- a C compiler that works: %s (%w)", advice, err)
	}
	return nil
}

// checkRoom looks for room where builds and caches go.
func checkRoom(buildCache, moduleCache string) error {
	room := roomBuilt
	if _, err := os.Stat(filepath.Join(moduleCache, "k8s.io")); err != nil {
		room = roomEmpty // the first run
	}
	var errs []error
	for name, dir := range map[string]string{"GOCACHE": buildCache, "GOMODCACHE": moduleCache, "TMPDIR": os.TempDir()} {
		left, err := free(dir)
		if err == nil && left < int64(room)*1e6 {
			err = fmt.Errorf("- room on the disk: %s is in %s, which has %d MB free of %d MB that the tests need. Free some (go clean -cache), or set %s to another disk", name, dir, left/1e6, room, name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// attempts is how often the go command is asked to download what is missing, and pause how
// long to wait before the second attempt; each further pause is twice as long.
const (
	attempts = 4
	pause    = 2 * time.Second
)

// download fetches the modules of all steps. The go command gives up at a proxy's first
// error, so it is asked again.
func download(ctx context.Context, root string, out io.Writer) error {
	asked := map[string]bool{}
	for _, s := range steps(packages{}, options{}) {
		if asked[s.dir] {
			continue
		}
		asked[s.dir] = true
		pattern := "./..."
		if s.dir == "" {
			pattern = module + "/..."
		}
		list := func() error {
			cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", "{{if .Error}}{{.Error}}{{end}}", pattern)
			cmd.Dir = filepath.Join(root, s.dir)
			cmd.Env = append(os.Environ(), s.env...)
			var complaints strings.Builder
			cmd.Stdout, cmd.Stderr = io.Discard, &complaints
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%w\n%s", err, lastLines(complaints.String(), 10))
			}
			return nil
		}
		fmt.Fprintf(out, "# download the modules of %s\n", filepath.Join(".", s.dir))
		if err := retry(ctx, attempts, pause, out, list); err != nil {
			return fmt.Errorf("download the modules of %s, %d times: %w\nGo asks the proxies in GOPROXY (go env GOPROXY): is the network there, and do HTTPS_PROXY and GOPROXY fit it?", filepath.Join(".", s.dir), attempts, err)
		}
	}
	return nil
}

// retry calls f until it succeeds, at most n times.
func retry(ctx context.Context, n int, wait time.Duration, out io.Writer, f func() error) error {
	for i := 1; ; i++ {
		err := f()
		if err == nil || i == n || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(out, "# attempt %d of %d failed, the next is in %s: %v\n", i, n, wait, err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// lastLines returns the last n lines of text that are not about a download's begin.
func lastLines(text string, n int) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(kept[max(0, len(kept)-n):], "\n")
}
