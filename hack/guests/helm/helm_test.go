// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

// within bounds the run time of one command.
const within = 5 * time.Minute

// Helm runs the same story on both servers. Each step succeeds or fails as the story says,
// with the same output on both.
func TestHelm_TellsOneStoryOnBothServers(t *testing.T) {
	binaries, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	helm := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(helm, "helm"), "helm.sh/helm/v4/cmd/helm").CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	env, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := os.ReadFile(env.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	path := helm + string(filepath.ListSeparator) + binaries
	real := newShell(t, path, kubeconfig, env.Config())
	l := serve(t)
	simulated := newShell(t, path, l.Kubeconfig(), l.Config())
	for _, s := range story(t) {
		want, err := real.run(s.command)
		if failed := err != nil; failed != s.fails {
			t.Errorf("%s\non a real server: %v, want failure: %v\n%s", s.command, err, s.fails, want)
		}
		got, err := simulated.run(s.command)
		if failed := err != nil; failed != s.fails {
			t.Errorf("%s\non the simulated server: %v, want failure: %v\n%s", s.command, err, s.fails, got)
		}
		if s.unordered {
			got, want = sorted(got), sorted(want)
		}
		if got != want {
			t.Errorf("%s\nsays on the simulated server:\n%s\non a real server:\n%s", s.command, got, want)
		}
	}
}

// step is one command of the story.
type step struct {
	command          string
	fails, unordered bool
}

// sorted returns output with its lines sorted.
func sorted(said string) string {
	return strings.Join(slices.Sorted(strings.Lines(said)), "")
}

// story parses the commands of testdata/story.txt: after "$ " one that succeeds, after "~ "
// one that succeeds and prints tables in any order, after "! " one that fails. Other lines
// are comments.
func story(t *testing.T) (steps []step) {
	t.Helper()
	text, err := os.ReadFile("testdata/story.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command})
		} else if command, ok := strings.CutPrefix(line, "~ "); ok {
			steps = append(steps, step{command: command, unordered: true})
		} else if command, ok := strings.CutPrefix(line, "! "); ok {
			steps = append(steps, step{command: command, fails: true})
		}
	}
	if len(steps) == 0 {
		t.Fatal("the story has no steps")
	}
	return steps
}

// shell runs commands against one server.
type shell struct {
	t    *testing.T
	dir  string
	path string
}

// newShell also runs cluster against that server.
func newShell(t *testing.T, path string, kubeconfig []byte, config *rest.Config) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), path: path}
	if err := os.WriteFile(filepath.Join(s.dir, "kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); cluster(ctx, api) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// run returns the output of a command, without what differs from run to run.
func (s *shell) run(command string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = "testdata"
	cmd.Env = append(os.Environ(), "PATH="+s.path+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"),
		"HELM_CACHE_HOME="+s.dir, "HELM_CONFIG_HOME="+s.dir, "HELM_DATA_HOME="+s.dir, "HELM_NAMESPACE=story", "TZ=UTC")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", command, err)
	}
	said := steady(strings.ReplaceAll(string(out), s.dir, "DIR"))
	if err != nil {
		said += fmt.Sprintln(err)
	}
	return said, err
}

// steady returns output without what differs from run to run.
func steady(said string) string {
	for _, v := range varying {
		said = v.pattern.ReplaceAllString(said, v.word)
	}
	return said
}

// Helm pads a column to its longest cell, and prints a time without the trailing zeros of
// its fraction.
func TestSteady_WidthOfAColumnWithTimes(t *testing.T) {
	short := steady("NAME\tUPDATED                               \tSTATUS  \nshop\t2026-11-22 20:35:01.12345678 +0000 UTC\tdeployed\n")
	long := steady("NAME\tUPDATED                                \tSTATUS  \nshop\t2026-11-22 20:35:02.123456789 +0000 UTC\tdeployed\n")
	if short != long {
		t.Errorf("two lists that differ in their times alone are\n%q and\n%q", short, long)
	}
}

// varying matches what differs between servers or runs.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	// client-go logs the end of a watch or not, depending on a race of two goroutines.
	{regexp.MustCompile(`(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d.*\n`), ""},
	{regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d \d{4}`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} [A-Z]+|[+-]\d\d:\d\d)?( m=\+[0-9.]+)?`), "TIME"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(` +\t`), "\t"}, // the width of a column depends on its times
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`(?m) +(\d+[dhms])+$`), " AGE"},
	{regexp.MustCompile(`(resourceVersion: )"\d+"`), "${1}VERSION"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "ADDRESS"},
}

// serve starts a simulated server that runs until the test ends.
func serve(t *testing.T) *simulate.Loopback {
	t.Helper()
	l, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return l
}
