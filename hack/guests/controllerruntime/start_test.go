// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

var (
	starts    = flag.Int("starts", 0, "measure this many starts of each operator on each side")
	startLogs = flag.Bool("logs", false, "print the end of the log of each measured operator")
	startOn   = flag.String("on", "real", "the `server` of the measured operators: real or simulated")
)

const (
	startWithin = 3 * time.Minute  // to the first write of a reconcile
	steadyAfter = 30 * time.Second // the memory is read this long after it
	ticks       = 100              // per second, in /proc/PID/stat
)

// sides are how an operator is started. limited: in a memory cgroup with a part of what
// controller-runtime takes at its peak without it.
var sides = []struct {
	name    string
	program string
	limited bool
}{
	{"without", asItIs, false}, {"with", withLine, false}, {"with, OmitNoOps", withNoOps, false},
	{"with, limit", withLine, true}, {"without, limit", asItIs, true},
}

// TestStart_CostsLess measures how programs of operators start in a cluster with 46,000 objects,
// with the line and without it, in turns and with the same libraries. It fails only if an operator
// does not reconcile.
//
//	go test -v -timeout 3h -run TestStart . -starts 3
func TestStart_CostsLess(t *testing.T) {
	if *starts == 0 {
		t.Skip("it needs an idle machine and an hour; run it with -starts 3")
	}
	ctrl.SetLogger(logr.Discard())
	config := startServer(t)
	fill(t, config)
	for _, o := range startedOperators {
		t.Run(o.name, func(t *testing.T) {
			at, programs := o.built(t)
			if o.prepared != nil {
				args, env := o.prepared(t)
				o.args, o.env = slices.Concat(o.args, args), slices.Concat(o.env, env)
			}
			o.install(t, config, at)
			runs, limit := make([][]startCost, len(sides)), int64(0)
			for turn := range *starts {
				for i, side := range sides {
					number, most := turn*len(sides)+i, int64(0)
					if side.limited {
						most = limit
					}
					if programs[side.program] == "" {
						continue
					}
					run := o.start(t, config, programs[side.program], most, number)
					t.Logf("%s, load %s: %+v", side.name, load(t), run)
					if runs[i] = append(runs[i], run); number == 0 {
						limit = run.peak / o.limit
					}
				}
			}
			t.Logf("%s, limit %d MB\n%s", o.name, limit/1e6, table(runs))
		})
	}
}

// startServer starts the API server that holds the objects.
func startServer(t *testing.T) *rest.Config {
	t.Helper()
	if *startOn == "real" {
		server, err := envtest.Start(t.Context(), envtest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		return server.Config()
	}
	server, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return server.Config()
}

// startCost is what one start needs.
type startCost struct {
	killed             bool // by the limit, before or after the first write
	wall, cpu, cpuLate time.Duration
	peak, steady, anon int64
	requests           requestCounts
}

// startRows are the lines of the table.
var startRows = []struct {
	name string
	of   func(startCost) float64
}{
	{"peak resident memory, MB", func(c startCost) float64 { return float64(c.peak) / 1e6 }},
	{"after 30 s, MB", func(c startCost) float64 { return float64(c.steady) / 1e6 }},
	{"of it anonymous, MB", func(c startCost) float64 { return float64(c.anon) / 1e6 }},
	{"processor time to the first write, s", func(c startCost) float64 { return c.cpu.Seconds() }},
	{"30 s later, s", func(c startCost) float64 { return c.cpuLate.Seconds() }},
	{"time to the first write, s", func(c startCost) float64 { return c.wall.Seconds() }},
	{"requests", func(c startCost) float64 { return float64(c.requests.all()) }},
	{"get", func(c startCost) float64 { return float64(c.requests.Verbs["get"]) }},
	{"list", func(c startCost) float64 { return float64(c.requests.Verbs["list"]) }},
	{"watch", func(c startCost) float64 { return float64(c.requests.Verbs["watch"]) }},
	{"create", func(c startCost) float64 { return float64(c.requests.Verbs["create"]) }},
	{"update", func(c startCost) float64 { return float64(c.requests.Verbs["update"]) }},
	{"patch", func(c startCost) float64 { return float64(c.requests.Verbs["patch"]) }},
	{"discovery", func(c startCost) float64 { return float64(c.requests.Verbs["discovery"]) }},
	{"delete", func(c startCost) float64 { return float64(c.requests.Verbs["delete"]) }},
	{"conflicts", func(c startCost) float64 { return float64(sum(c.requests.Conflicts)) }},
	{"no-op writes", func(c startCost) float64 { return float64(sum(c.requests.NoOps)) }},
}

// table returns the medians of the runs of each side in Markdown.
func table(runs [][]startCost) string {
	var b strings.Builder
	fmt.Fprint(&b, "| median of ", len(runs[0]))
	for i, side := range sides {
		if len(runs[i]) > 0 {
			fmt.Fprint(&b, " | ", side.name)
		}
	}
	fmt.Fprint(&b, " |\n|---", strings.Repeat("|---", strings.Count(b.String(), "|")-1), "|\n")
	for _, row := range startRows {
		fmt.Fprint(&b, "| ", row.name)
		for _, all := range runs {
			if len(all) > 0 {
				fmt.Fprint(&b, " | ", median(all, row.of))
			}
		}
		fmt.Fprint(&b, " |\n")
	}
	return b.String()
}

// median returns the median of the runs, or that the limit kills most of them.
func median(runs []startCost, of func(startCost) float64) string {
	var values []float64
	for _, run := range runs {
		if !run.killed {
			values = append(values, of(run))
		}
	}
	if 2*len(values) <= len(runs) {
		return "killed"
	}
	slices.Sort(values)
	return strconv.FormatFloat(values[len(values)/2], 'g', 4, 64)
}

func load(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// start runs a program until 30 seconds after the first write of a reconcile.
func (o started) start(
	t *testing.T, config *rest.Config, program string, limit int64, number int,
) (cost startCost) {
	t.Helper()
	first := make(chan time.Time, 1)
	f := newFront(t, config, o.writes, func(at time.Time) { first <- at })
	defer o.create(t, config, number)()
	ctx, cancel := context.WithTimeout(t.Context(), startWithin+steadyAfter+time.Minute)
	defer cancel()
	var said tail
	cmd := o.command(ctx, t, program, limit, f.kubeconfig)
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case at := <-first:
		cost.wall, cost.cpu = at.Sub(began), processorTime(cmd.Process.Pid)
	case err := <-ended:
		return o.killed(t, cost, f, err, &said)
	case <-time.After(startWithin):
		cancel()
		<-ended
		t.Fatalf("%s has not reconciled after %v\n%s", o.name, startWithin, said.String())
	}
	select {
	case err := <-ended:
		return o.killed(t, cost, f, err, &said)
	case <-time.After(steadyAfter):
	}
	cost.cpuLate, cost.requests = processorTime(cmd.Process.Pid), f.counted()
	cost.peak, cost.steady, cost.anon = resident(t, cmd.Process.Pid)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		cancel()
		<-ended
	}
	if *startLogs {
		t.Log(said.String())
	}
	return cost
}

// command returns the command that runs a program, with a limit in a memory cgroup.
func (o started) command(
	ctx context.Context, t *testing.T, program string, limit int64, kubeconfig string,
) *exec.Cmd {
	t.Helper()
	args := append([]string{program}, o.args...)
	env := append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	env = append(env, o.env...)
	if limit > 0 {
		enter := `echo $$ > "$0/cgroup.procs" && exec "$@"`
		args = append([]string{"/bin/sh", "-c", enter, memoryGroup(t, limit)}, args...)
		if o.limitVariable != "" {
			env = append(env, o.limitVariable+"="+strconv.FormatInt(limit, 10))
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = env
	return cmd
}

// killed returns the cost of a program that has ended too early, which only a limit may cause.
func (o started) killed(t *testing.T, cost startCost, f *front, err error, said *tail) startCost {
	t.Helper()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended: %v\n%s", o.name, err, said.String())
	}
	cost.killed, cost.requests = true, f.counted()
	return cost
}

// memoryGroup makes a memory cgroup with a limit; it skips the test where it may not.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	dir := fmt.Sprintf("/sys/fs/cgroup/memory/flyball-guests-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		t.Skipf("make a memory cgroup (of version 1): %v", err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	file := filepath.Join(dir, "memory.limit_in_bytes")
	if err := os.WriteFile(file, []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// processorTime returns what a process has used. 0: it has ended.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if err != nil || !found || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks
}

// resident returns the resident memory of a process in bytes: its peak, now, and of this what is
// not of files.
func resident(t *testing.T, pid int) (peak, now, anonymous int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) int64 {
		_, line, _ := strings.Cut(string(text), "\n"+name+":")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			t.Fatalf("read %s of process %d: %q", name, pid, text)
		}
		kB, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return kB * 1024
	}
	return of("VmHWM"), of("VmRSS"), of("RssAnon")
}

// tail keeps the end of what a program prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (s *tail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const kept = 20_000
	s.text = append(s.text, p...)
	if extra := len(s.text) - kept; extra > 0 {
		s.text = bytes.Clone(s.text[extra:])
	}
	return len(p), nil
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(string(s.text), "it has printed nothing")
}
