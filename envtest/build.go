// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
)

const (
	progressEvery = 20 * time.Second
	lockEvery     = 200 * time.Millisecond

	downloads     = 4 // attempts with one error
	downloadPause = 2 * time.Second
)

// buildOnce builds the binaries into dir unless another process has done so meanwhile.
func buildOnce(ctx context.Context, dir string, out io.Writer) error {
	root := filepath.Dir(dir)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	unlock, err := lockWait(ctx, dir+".lock", out)
	if err != nil {
		return err
	}
	defer unlock()
	if complete(dir) {
		return nil
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("find the go command: %w; set %s to a directory with etcd, kube-apiserver and kubectl", err, AssetsVariable)
	}
	// The lock is held, so files under these names were left by a build that was killed.
	work := dir + ".building"
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(dir)); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := WriteRecipe(work); err != nil {
		return err
	}
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	began := time.Now()
	fmt.Fprintf(out, "envtest: building etcd %s, kube-apiserver and kubectl %s into %s (once, some minutes)\n", etcdVersion, kubernetesVersion, dir)
	if err := download(ctx, gocmd, work, downloadPause, out); err != nil {
		return err
	}
	for _, step := range buildSteps(bin) {
		if err := runStep(ctx, gocmd, work, step, out); err != nil {
			return err
		}
	}
	if missing := missingBinaries(bin, "etcd", "kube-apiserver", "kubectl"); len(missing) > 0 {
		return fmt.Errorf("the build produced no %s", strings.Join(missing, ", no "))
	}
	if err := os.Rename(bin, dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "envtest: control plane built in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// download fetches the modules of the recipe. The go command gives up at a proxy's first error, so it is asked again, after
// pauses that get longer by pause, until it has failed several times with one error.
func download(ctx context.Context, gocmd, module string, pause time.Duration, out io.Writer) error {
	step := buildStep{what: "modules", args: []string{"list", "-deps", etcdPackage, apiserverPackage, kubectlPackage}}
	alike, last := 0, ""
	for i := 1; ; i++ {
		err := runStep(ctx, gocmd, module, step, out)
		if err == nil || ctx.Err() != nil {
			return err
		}
		_, complaint, _ := strings.Cut(err.Error(), "\n") // without the time that it took
		if alike++; complaint != last {
			alike, last = 1, complaint
		}
		if alike == downloads || i == 10*downloads {
			return err
		}
		fmt.Fprintf(out, "envtest: attempt %d failed: %v\n", i, err)
		if !sleep.For(ctx, time.Duration(alike)*pause) {
			return context.Cause(ctx)
		}
	}
}

// runStep runs the go command for one step and reports progress to out.
func runStep(ctx context.Context, gocmd, module string, step buildStep, out io.Writer) error {
	log := &buildLog{}
	cmd := exec.CommandContext(ctx, gocmd, step.args...)
	cmd.Dir = module
	cmd.Env = buildEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 5 * time.Second

	began := time.Now()
	ended := make(chan error, 1)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { ended <- cmd.Run() })
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			took := time.Since(began).Round(time.Second)
			if err != nil {
				return fmt.Errorf("go %s, after %s: %w\n%s", strings.Join(step.args[:1], " ")+" "+step.what, took, cmpErr(ctx, err), log.complaints())
			}
			fmt.Fprintf(out, "envtest: %s: done in %s\n", step.what, took)
			return nil
		case <-tick.C:
			fmt.Fprintf(out, "envtest: %s: %s, %s\n", step.what, time.Since(began).Round(time.Second), log.progress())
		}
	}
}

// cmpErr returns the cause of the context's end if it has ended, else err.
func cmpErr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// buildEnv returns the environment of the go command: the caller's, without variables that would let a workspace, flags or
// another target change the build. Whether cgo is on is left to the caller: what is compiled serves its tests, too.
func buildEnv(environ []string) []string {
	set := map[string]string{
		"GOWORK":      "off",
		"GOFLAGS":     "-mod=readonly", // an empty value would let go env -w apply
		"GOTOOLCHAIN": "local",
		"GO111MODULE": "on",
		"GOOS":        runtime.GOOS,
		"GOARCH":      runtime.GOARCH,
	}
	var env []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, ok := set[name]; !ok {
			env = append(env, entry)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// A buildLog parses the output of the go command: compiled packages, loaded modules, and the rest, which explains a
// failure. It is safe for concurrent use.
type buildLog struct {
	mu struct {
		sync.Mutex
		partial  []byte
		packages int
		latest   string
		rest     []string
	}
}

// Write adds a piece of output.
func (l *buildLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.partial = append(l.mu.partial, p...)
	for {
		line, after, found := bytes.Cut(l.mu.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.lineLocked(string(line))
		l.mu.partial = after
	}
}

func (l *buildLog) lineLocked(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		l.mu.latest = strings.TrimPrefix(line, "go: ")
	case line != "" && !strings.ContainsAny(line, " :#\t"):
		l.mu.packages++
		l.mu.latest = line
	default:
		l.mu.rest = append(l.mu.rest, line)
	}
}

// progress describes how far the build is.
func (l *buildLog) progress() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.latest == "" {
		return "starting"
	}
	return fmt.Sprintf("%d packages, now %s", l.mu.packages, l.mu.latest)
}

// complaints returns the last lines that are neither packages nor modules.
func (l *buildLog) complaints() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := append(l.mu.rest[:len(l.mu.rest):len(l.mu.rest)], string(l.mu.partial))
	return strings.TrimSpace(strings.Join(rest[max(0, len(rest)-20):], "\n"))
}
