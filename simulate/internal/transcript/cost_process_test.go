// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package transcript_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/simulate"
)

const (
	costServes = "FLYBALL_COST_KUBECONFIG" // set: this process is the simulated server, and writes its kubeconfig there
	costReady  = "the kubeconfig is written"
)

// simulatedProcess starts a simulated server in a process of its own.
func simulatedProcess(b *testing.B) (*rest.Config, int) {
	file := filepath.Join(b.TempDir(), "kubeconfig")
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestCostServes$")
	cmd.Env = append(os.Environ(), costServes+"="+file)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != costReady {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			b.Fatal(err)
		}
		return config, cmd.Process.Pid
	}
	b.Fatal("the simulated server did not start")
	return nil, 0
}

// TestCostServes is the simulated server of BenchmarkCost, not a test.
func TestCostServes(t *testing.T) {
	file := os.Getenv(costServes)
	if file == "" {
		t.Skip("runs in a child process of BenchmarkCost")
	}
	l, err := simulate.Listen(simulate.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	fmt.Println(costReady)
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	if err := l.Run(ctx); err != nil {
		t.Error(err)
	}
}

// descendants returns the descendant processes of this one that have these names.
func descendants(names ...string) (pids []int) {
	parents := map[int]int{}
	called := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range dirs {
		text, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if open < 0 || end < 0 {
			continue // it has ended
		}
		called[pid] = string(text[open+1 : end])
		parents[pid], _ = strconv.Atoi(strings.Fields(string(text[end+1:]))[1])
	}
	for pid, name := range called {
		for _, wanted := range names {
			for p := pid; name == wanted && p > 1; p = parents[p] {
				if p == os.Getpid() {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// spent returns the processor time of the server's processes so far, in seconds. The unit
// of /proc is a hundredth of a second.
func (c *costClient) spent() (seconds float64) {
	b := c.b
	for _, pid := range c.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, _ := strconv.ParseFloat(field, 64)
			seconds += ticks / 100
		}
	}
	return seconds
}

// peak returns the sum of the peak memory of the server's processes, in MB.
func (c *costClient) peak() (megabytes float64) {
	b := c.b
	for _, pid := range c.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		megabytes += kilobytes / 1000
	}
	return megabytes
}
