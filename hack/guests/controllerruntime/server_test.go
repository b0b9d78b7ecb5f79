// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

// atOnce is the number of concurrent suites. They mostly wait, so it exceeds the number of
// processors.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

// simulatedBinaries returns a directory with the simulated server under the names that
// envtest starts.
func simulatedBinaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	output(t, "go", "run", "-ldflags=-s -w", "github.com/flyball-dev/flyball/simulate/cmd/apiserver", "install", dir)
	return dir
}

// TestDropIn_AFreshSuite runs the suite of an operator that knows only controller-runtime on
// both servers.
func TestDropIn_AFreshSuite(t *testing.T) {
	t.Parallel()
	for name, binaries := range map[string]func(*testing.T) string{"simulated": simulatedBinaries, "real": realBinaries} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./testdata/guestbook")
			cmd.Env = append(os.Environ(), envtest.AssetsVariable+"="+binaries(t), mark+t.Name())
			began := time.Now()
			said, err := cmd.CombinedOutput()
			if ended := endLeftovers(mark + t.Name()); ended != nil {
				t.Error(ended)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			t.Logf("%s in all %v", said, time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestDoctor_AFreshSuite tries faults at the writes of that operator. It is right.
func TestDoctor_AFreshSuite(t *testing.T) {
	t.Parallel()
	r, err := doctor.Command{
		Suite: true, Assets: simulatedBinaries(t), Args: []string{"go", "test", "./testdata/guestbook"}, Env: []string{mark + t.Name()},
	}.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Text())
	if r.Ran == 0 || len(r.Findings) > 0 || len(r.Skipped) > 0 {
		t.Errorf("%d plans have %d findings, and %d things were not judged; want some plans, and neither", r.Ran, len(r.Findings), len(r.Skipped))
	}
}
