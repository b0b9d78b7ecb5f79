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

	"github.com/flyball-dev/flyball/internal/sleep"
)

// Room on the disk, in MB: for builds with empty caches, of all that has changed since the
// control plane was built, and for the modules and temporary files.
const (
	roomEmpty   = 9000
	roomBuilt   = 2000
	roomModules = 2000
	roomTemp    = 1000
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
	err = errors.Join(checkGit(ctx, root), checkTemporary(ctx, env[2]), checkRoom(places(env[0], env[1], built()), free))
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

// A place is a directory and how many MB it needs.
type place struct {
	name, dir string
	room      int64
}

func places(buildCache, moduleCache string, built bool) []place {
	room := int64(roomEmpty)
	if built {
		room = roomBuilt
	}
	return []place{{"GOCACHE", buildCache, room}, {"GOMODCACHE", moduleCache, roomModules}, {"TMPDIR", os.TempDir(), roomTemp}}
}

// built reports whether a control plane has been built: packages of others are then compiled.
func built() bool {
	cache, err := os.UserCacheDir()
	if err != nil {
		return false
	}
	found, _ := filepath.Glob(filepath.Join(cache, "flyball", "controlplane", "*", "kube-apiserver*"))
	return len(found) > 0
}

// checkRoom looks for room on the disks of the places. free returns how many bytes are left.
func checkRoom(places []place, free func(dir string) (int64, error)) error {
	var errs []error
	for _, p := range places {
		left, err := free(p.dir)
		if err == nil && left < p.room*1e6 {
			err = fmt.Errorf("- room on the disk: %s is in %s, which has %d MB free of %d MB that the tests need. Free some (go clean -cache), or set %s to another disk", p.name, p.dir, left/1e6, p.room, p.name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// attempts is how often the go command may fail alike before a download is given up, and pause
// how long to wait before the second attempt; each further pause is twice as long.
const (
	attempts = 4
	pause    = 2 * time.Second
)

// download fetches the modules of the steps. The go command gives up at a proxy's first
// error, so it is asked again. Other errors, such as of a wrong import, are left to the step,
// which reports them.
func download(ctx context.Context, root string, all []step, out *lines) error {
	asked := map[string]bool{}
	for _, s := range all {
		if asked[s.dir] {
			continue
		}
		asked[s.dir] = true
		pattern := "./..."
		if s.dir == "" {
			pattern = module + "/..."
		}
		what := "the modules of " + filepath.Join(".", s.dir)
		list := func() error {
			cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", pattern)
			cmd.Dir = filepath.Join(root, s.dir)
			cmd.Env = append(os.Environ(), s.env...)
			var complaints strings.Builder
			cmd.Stdout, cmd.Stderr = io.Discard, &complaints
			err := cmd.Run()
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && ofAProxy(complaints.String()):
				return fmt.Errorf("%w\n%s", err, lastLines(complaints.String(), 10))
			}
			return nil
		}
		fmt.Fprintf(out, "# download %s\n", what)
		out.started(what)
		err := retry(ctx, attempts, pause, out, list)
		out.ended(what)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("download %s: %w\nGo asks the proxies in GOPROXY (go env GOPROXY): is the network there, and do HTTPS_PROXY and GOPROXY fit it?", what, err)
		}
	}
	return nil
}

// ofAProxy reports whether Go complains of a download, whose address it then names.
func ofAProxy(complaints string) bool { return strings.Contains(complaints, "://") }

// retry calls f until it succeeds, or until it has failed n times with one error: with
// another one it has come further. It gives up after 10n calls.
func retry(ctx context.Context, n int, pause time.Duration, out io.Writer, f func() error) error {
	wait, alike, last := pause, 0, ""
	for i := 1; ; i++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if alike++; err.Error() != last {
			wait, alike, last = pause, 1, err.Error()
		}
		if alike == n || i == 10*n {
			return err
		}
		fmt.Fprintf(out, "# attempt %d failed, the next is in %s: %v\n", i, wait, err)
		if !sleep.For(ctx, wait) {
			return context.Cause(ctx)
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
