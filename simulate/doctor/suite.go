// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// suites are the test binaries of a command such as go test. Their specs start a simulated server by envtest, and
// are the user of the operator that they run in their process.
type suites struct {
	command []string
	env     []string // further variables
	assets  string   // a directory with etcd and kube-apiserver of the simulated server
	scratch string
	mu      sync.Mutex
	number  int
	all     []*suite
}

// suites builds the suites of the command, and returns a player for their walks, which it adds.
func (c Command) suites(ctx context.Context, to *subject, scratch string) (realPlayer, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("suites are not examined on Windows; use Linux or macOS")
	}
	all := &suites{command: c.Args, env: c.Env, scratch: scratch, assets: c.Assets}
	var err error
	if all.assets == "" {
		all.assets = filepath.Join(scratch, "assets")
		err = installAssets(ctx, all.assets)
	} else if all.assets, err = filepath.Abs(c.Assets); err == nil {
		if _, err = os.Stat(filepath.Join(all.assets, "kube-apiserver")); err != nil {
			err = fmt.Errorf("the assets: %w; name a directory that apiserver install has written", err)
		}
	}
	if err == nil {
		err = all.find(ctx)
	}
	for _, one := range all.all {
		to.walks = append(to.walks, walk{name: one.name, suite: true, steps: []step{{text: "run the suite"}}})
	}
	return all.play, err
}

// suite is a test binary as go test would run it.
type suite struct {
	name, dir, program string
	args, env          []string
	ginkgo             bool
	mu                 sync.Mutex
	// server is the number of the server that faults are tried at, and usual how long a run takes; 0: the first run
	// has not ended.
	server int
	usual  time.Duration
}

// keep is a program for go test -exec: it keeps a test binary, with how it is to be run, and does not run it.
const keep = `#!/bin/sh
case "$1" in *.test) ;; *) exec "$@" ;; esac
dir=$(mktemp -d %q/XXXXXXXX) && cp "$1" "$dir/suite.test" && pwd >"$dir/dir" && env -0 >"$dir/env" && shift && printf '%%s\0' "$@" >"$dir/args"
`

// stacksFile is a file of the package of tests that exists in the binaries alone. It says which goroutine does what.
const stacksFile = `package %s

import (
	"net"
	"os"
	"runtime"
)

func init() {
	at := os.Getenv("` + stacksVariable + `")
	if at == "" {
		return
	}
	l, err := net.Listen("unix", at)
	if err != nil {
		return
	}
	go func() {
		stacks := make([]byte, 16<<20)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(stacks[:runtime.Stack(stacks, true)])
			_ = c.Close()
		}
	}()
}
`

const (
	stacksVariable = "FLYBALL_DOCTOR_STACKS"
	stacksName     = "zz_flyball_doctor_test.go"
)

// find builds the test binaries. The first time it learns which packages there are, the second time they say which
// goroutine does what.
func (s *suites) find(ctx context.Context) error {
	if err := s.build(ctx); err != nil {
		return err
	}
	replace := map[string]string{}
	for i, one := range s.all {
		tests, err := filepath.Glob(filepath.Join(one.dir, "*_test.go"))
		if err != nil || len(tests) == 0 {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), tests[0], nil, parser.PackageClauseOnly)
		if err != nil {
			return fmt.Errorf("read the package of %s: %w", tests[0], err)
		}
		file := filepath.Join(s.scratch, fmt.Sprintf("stacks-%d.go", i))
		if err := os.WriteFile(file, fmt.Appendf(nil, stacksFile, parsed.Name.Name), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(one.dir, stacksName)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(s.scratch, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	return s.build(ctx, "-overlay="+overlay)
}

// build runs the command with flags of go, so that it builds the test binaries and does not run them.
func (s *suites) build(ctx context.Context, flags ...string) error {
	kept, err := os.MkdirTemp(s.scratch, "kept-")
	if err != nil {
		return err
	}
	script := filepath.Join(kept, "keep.sh")
	if err := os.WriteFile(script, fmt.Appendf(nil, keep, kept), 0o700); err != nil {
		return err
	}
	usual, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return fmt.Errorf("go env GOFLAGS: %w; the suite's command needs go", err)
	}
	own := strings.TrimSpace(string(usual))
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Env = append(append(os.Environ(), s.env...), "GOFLAGS="+strings.Join(append([]string{own, "-exec=" + script}, flags...), " "), "KUBEBUILDER_ASSETS="+s.assets)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the suite by %q: %w\n%s", strings.Join(s.command, " "), err, said)
	}
	entries, err := filepath.Glob(filepath.Join(kept, "*", "suite.test"))
	if err != nil {
		return err
	}
	s.all = nil
	for _, program := range entries {
		one, err := keptAt(filepath.Dir(program), own)
		if err != nil {
			return err
		}
		s.all = append(s.all, one)
	}
	if len(s.all) == 0 {
		return fmt.Errorf("%q runs no tests by go test; give a command that does, such as go test ./internal/controller", strings.Join(s.command, " "))
	}
	slices.SortFunc(s.all, func(a, b *suite) int { return strings.Compare(a.name, b.name) })
	return nil
}

// keptAt reads what was kept of a test binary. flags are those of go in its environment.
func keptAt(at, flags string) (*suite, error) {
	one := &suite{program: filepath.Join(at, "suite.test")}
	for name, to := range map[string]*[]string{"args": &one.args, "env": &one.env} {
		text, err := os.ReadFile(filepath.Join(at, name))
		if err != nil {
			return nil, err
		}
		*to = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	dir, err := os.ReadFile(filepath.Join(at, "dir"))
	if err != nil {
		return nil, err
	}
	one.dir = strings.TrimSpace(string(dir))
	one.name = one.dir
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, one.dir); err == nil {
			one.name = short
		}
	}
	code, err := os.ReadFile(one.program)
	if err != nil {
		return nil, err
	}
	one.ginkgo = bytes.Contains(code, []byte("github.com/onsi/ginkgo/v2.RunSpecs"))
	// What go test reads afterwards, as coverage, it does not read here, and start bounds the time.
	one.args = slices.DeleteFunc(one.args, func(arg string) bool {
		return arg == "" || strings.HasPrefix(arg, "-test.cover") || strings.HasPrefix(arg, "-test.gocoverdir") || strings.HasPrefix(arg, "-test.testlogfile") || strings.HasPrefix(arg, "-test.v=") || strings.HasPrefix(arg, "-test.timeout=")
	})
	one.env = append(one.env, "GOFLAGS="+flags)
	return one, nil
}

// The bounds of a run.
const (
	firstRun   = 20 * time.Minute
	beyondThat = 30 * time.Second // what a run may take longer than three of those without faults
)

// play runs a suite with a plan.
func (s *suites) play(ctx context.Context, w walk, p plan, seed uint64, _ *trial) (*trial, error) {
	out := &trial{plan: p, seed: seed, peaks: map[ref]int64{}}
	one := s.all[slices.IndexFunc(s.all, func(one *suite) bool { return one.name == w.name })]
	one.mu.Lock()
	server, usual := one.server, one.usual
	one.mu.Unlock()
	within := firstRun
	if usual > 0 {
		within = 3*usual + beyondThat
	}
	faults, _ := aimed(p) // all are at writes
	dir, err := s.place(aim.Plan{Server: server, Faults: faults})
	if err != nil {
		return out, err
	}
	begun := time.Now()
	said, exit, ended := s.start(ctx, one, dir, within)
	took := time.Since(begun)
	out.took, out.last = []time.Duration{took}, objects{} // a suite that has ended rests, and its objects are not compared
	out.write = said.keep
	if ctx.Err() != nil {
		return out, nil
	}
	traces, err := aim.Traces(dir)
	if err != nil {
		return out, err
	}
	if len(traces) == 0 {
		out.refused = "it has started no API server by envtest"
		return out, nil
	}
	one.mu.Lock()
	if len(p.Faults) == 0 {
		one.usual = max(one.usual, took)
	}
	if one.server == 0 {
		one.server = mostWritten(traces)
	}
	server = one.server
	one.mu.Unlock()
	sure := false
	if server <= len(traces) {
		sure = out.replay(traces[server-1])
	}
	out.outcome(specsOf(filepath.Join(dir, reportName), said.text()), said, exit, sure)
	if !ended {
		out.addWrong(wrong{"V7", fmt.Sprintf("the suite does not end within %s; without faults it took %s", within.Round(time.Second), usual.Round(time.Second))})
	}
	return out, os.RemoveAll(dir)
}

// place makes a directory with the programs of the simulated server, and a plan beside them.
func (s *suites) place(p aim.Plan) (dir string, err error) {
	s.mu.Lock()
	s.number++
	dir = filepath.Join(s.scratch, fmt.Sprint("run-", s.number))
	s.mu.Unlock()
	if err = os.Mkdir(dir, 0o700); err != nil {
		return dir, err
	}
	programs, err := os.ReadDir(s.assets)
	if err != nil {
		return dir, err
	}
	for _, program := range programs {
		if err := os.Symlink(filepath.Join(s.assets, program.Name()), filepath.Join(dir, program.Name())); err != nil {
			return dir, err
		}
	}
	p.Stacks = filepath.Join(dir, stacksSocket)
	text, err := json.Marshal(p)
	if err != nil {
		return dir, err
	}
	return dir, os.WriteFile(filepath.Join(dir, aim.PlanFile), text, 0o600)
}

const (
	stacksSocket = "stacks"
	reportName   = "report.json"
)

// start runs a suite with the servers of a directory. ended is false if it had to be ended.
func (s *suites) start(ctx context.Context, one *suite, dir string, within time.Duration) (said *tail, exit error, ended bool) {
	said = &tail{}
	cmd := exec.Command(one.program, append(slices.Clone(one.args), "-test.v", "-test.timeout=0")...)
	if one.ginkgo {
		cmd.Args = append(cmd.Args, "-ginkgo.json-report="+filepath.Join(dir, reportName), "-ginkgo.seed=1", "-ginkgo.no-color", "-ginkgo.v")
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = one.dir, said, said, beyondThat/10
	cmd.Env = append(slices.Clone(one.env), "KUBEBUILDER_ASSETS="+dir, "TEST_ASSET_ETCD="+filepath.Join(dir, "etcd"),
		"TEST_ASSET_KUBE_APISERVER="+filepath.Join(dir, "kube-apiserver"), stacksVariable+"="+filepath.Join(dir, stacksSocket))
	if !slices.ContainsFunc(one.env, func(v string) bool { return strings.HasPrefix(v, eventually) }) {
		cmd.Env = append(cmd.Env, eventually+"10s")
	}
	asGroup(cmd)
	if err := cmd.Start(); err != nil {
		return said, err, true
	}
	bounded, end := context.WithTimeout(ctx, within)
	defer end()
	stop := context.AfterFunc(bounded, func() { endGroup(cmd) })
	exit = cmd.Wait()
	return said, exit, stop()
}

// eventually is the variable of gomega for how long an Eventually without a time waits; a second is short.
const eventually = "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT="

// mostWritten returns the number of the server with the most writes.
func mostWritten(traces [][]aim.Event) int {
	best, most := 1, -1
	for i, events := range traces {
		n := 0
		for _, e := range events {
			if e.Asked != nil && e.Asked.Writes() {
				n++
			}
		}
		if n > most {
			best, most = i+1, n
		}
	}
	return best
}

// installAssets installs the programs of the simulated server by the tool of the module in this directory.
func installAssets(ctx context.Context, dir string) error {
	said, err := exec.CommandContext(ctx, "go", "tool", "apiserver", "install", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go tool apiserver install: %w: %s; run go get -tool github.com/flyball-dev/flyball/simulate/cmd/apiserver, or name a directory that apiserver install has written",
			err, bytes.TrimSpace(said))
	}
	return nil
}
