// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/flyball-dev/flyball/envtest"
)

const (
	theirs = "sigs.k8s.io/controller-runtime/pkg/"

	// suitesAtLeast is how many of the suites need a server. Finding fewer means that the
	// search is broken.
	suitesAtLeast = 17

	// downloads are tests that download an API server of 2023.
	downloads = "^Test/^aggregatedDiscovery=false$"

	// within bounds the run time of one suite.
	within = 20 * time.Minute
)

func TestSuites(t *testing.T) {
	t.Parallel()
	simulated := simulatedBinaries(t)
	differ := differences(t, "DIFFERENCES.txt")
	all := suites(t)
	if len(all) < suitesAtLeast {
		t.Fatalf("%d suites start a server, at least %d did before", len(all), suitesAtLeast)
	}
	for _, s := range all {
		t.Run(strings.ReplaceAll(s.name, "/", "."), func(t *testing.T) {
			s.compile(t)
			t.Run("simulated", func(t *testing.T) { hold(t, s.run(t, simulated), differ[s.name]) })
			t.Run("real", func(t *testing.T) { hold(t, s.run(t, realBinaries(t)), nil) })
		})
	}
}

func realBinaries(t *testing.T) string {
	t.Helper()
	real, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// hold fails for each failed spec that is not known to differ, and for each spec known to
// differ that has passed or does not exist.
func hold(t *testing.T, specs types.SpecReports, differ map[string]string) {
	passed, left := 0, maps.Clone(differ)
	for _, spec := range specs {
		reason, known := differ[spec.FullText()]
		delete(left, spec.FullText())
		switch {
		case spec.State.Is(types.SpecStateSkipped | types.SpecStatePending):
		case spec.State.Is(types.SpecStatePassed) && known:
			t.Errorf("%q passes: take it out of the known differences (%s)", spec.FullText(), reason)
		case spec.State.Is(types.SpecStatePassed):
			passed++
		case !known:
			t.Errorf("%s %q\n%s\n%s", spec.State, spec.FullText(), spec.FailureLocation(), spec.FailureMessage())
		}
	}
	for name := range left {
		t.Errorf("the known differences name %q, which the suite does not have", name)
	}
	t.Logf("%d specs pass, %d are known to fail", passed, len(differ))
}

// suite is a package of tests that start a server.
type suite struct {
	name, dir, binary string
	assets            bool   // the suite looks for the binaries in a directory of its own
	leaveOut          string // a regular expression of specs to skip
	once              bool   // what fails does not run again
	env               []string
}

// suites returns the suites that need a server.
func suites(t *testing.T) (found []*suite) {
	t.Helper()
	listed := output(t, "go", "list", "-f", `{{.ImportPath}} {{.Dir}}`, theirs+"...")
	for line := range strings.Lines(listed) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		s := &suite{name: strings.TrimPrefix(path, theirs), dir: dir}
		needs, err := s.needsServer()
		if err != nil {
			t.Fatal(err)
		}
		if needs {
			found = append(found, s)
		}
	}
	return found
}

// compile builds the suite's test binary, which is removed with the test.
func (s *suite) compile(t *testing.T) {
	t.Helper()
	s.binary = filepath.Join(t.TempDir(), "suite")
	output(t, "go", "test", "-vet=off", "-c", "-ldflags=-s -w", "-o", s.binary, theirs+s.name)
}

// needsServer reports whether a test of the package starts a server.
func (s *suite) needsServer() (bool, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if bytes.Contains(text, []byte("envtest.Environment{")) || bytes.Contains(text, []byte("env = &Environment{")) {
			return true, nil
		}
	}
	return false, nil
}

// run returns the reports of the specs. A suite that crashes is run up to twice
// more, as a spec that fails is: some specs assert in a goroutine of their own,
// where a failure ends the program without a report.
func (s *suite) run(t *testing.T, binaries string) types.SpecReports {
	t.Helper()
	for attempt := 1; ; attempt++ {
		specs, err := s.attempt(t, binaries)
		if err == nil {
			return specs
		}
		if attempt == 3 || s.once {
			t.Fatal(err)
		}
		t.Logf("the suite crashed and runs again: %.2000v", err)
	}
}

// attempt runs the suite once. It returns an error if there is no report.
func (s *suite) attempt(t *testing.T, binaries string) (types.SpecReports, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.timeout="+within.String(), "-ginkgo.json-report="+file, "-ginkgo.no-color", "-test.skip="+downloads)
	if !s.once {
		cmd.Args = append(cmd.Args, "-ginkgo.flake-attempts=3")
	}
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), envtest.AssetsVariable+"="+binaries, "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=30s", "USE_EXISTING_CLUSTER=",
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=5m")
	if s.leaveOut != "" {
		cmd.Args = append(cmd.Args, "-ginkgo.skip="+s.leaveOut)
	}
	if s.assets {
		cmd.Env = append(cmd.Env, "TEST_ASSET_ETCD="+filepath.Join(binaries, "etcd"), "TEST_ASSET_KUBE_APISERVER="+filepath.Join(binaries, "kube-apiserver"))
	}
	cmd.Env = append(append(cmd.Env, s.env...), mark+file)
	said, failed := cmd.CombinedOutput()
	if err := endLeftovers(mark + file); err != nil {
		t.Errorf("end the servers that the suite left running: %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)\n%s", err, failed, said)
	}
	var reports []types.Report
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, err
	}
	var specs types.SpecReports
	for _, r := range reports {
		specs = append(specs, r.SpecReports...)
	}
	bad := func(r types.SpecReport) bool { return r.Failed() }
	if failed != nil && !slices.ContainsFunc(specs, bad) {
		t.Errorf("%v, and no spec says why\n%s", failed, said)
	}
	return specs.WithLeafNodeType(types.NodeTypeIt | types.NodeTypeBeforeSuite | types.NodeTypeAfterSuite), nil
}

// mark is a variable in the environment of a suite, and so of the servers that it starts.
const mark = "FLYBALL_GUESTS_REPORT="

// endLeftovers kills the processes that have variable in their environment, because some
// suites do not stop every server that they start. Without /proc it finds none.
func endLeftovers(variable string) error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, file := range environments {
		text, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), variable) {
			continue // it has ended, or belongs to another user
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return nil
}

// differences returns the lines of a file, by suite and spec: suite, spec and reason,
// separated by tabs.
func differences(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 {
			t.Fatalf("%s: %q is not suite, spec and reason with tabs between them", file, line)
		}
		if out[parts[0]] == nil {
			out[parts[0]] = map[string]string{}
		}
		out[parts[0]][parts[1]] = parts[2]
	}
	return out
}

// output runs a command and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	return outputIn(t, "", name, args...)
}

// outputIn is output of a command in dir, which is a module outside the workspace.
func outputIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &said, dir
	if dir != "" {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &said)
	}
	return out.String()
}
