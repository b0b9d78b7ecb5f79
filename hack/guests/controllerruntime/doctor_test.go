// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate/doctor"
)

var examineAll = flag.Bool("doctor", false, "examine the operators completely, and print the findings")

// examined is an operator that doctor examines. The files of testdata/doctor/NAME run it, in a package of a copy
// of its module, because its controllers are internal packages.
type examined struct {
	name, module string
	mod          []string // further arguments of go mod edit
	// bug is what has to be found: the class, the kind of the object and the pattern.
	bug [3]string
	// plan is one that finds it, so that the test needs no search; empty: all are tried.
	plan string
}

var examinedOperators = []examined{
	{name: "kubegreen", module: "github.com/kube-green/kube-green@v0.7.1"},
	{name: "appwrapper", module: "github.com/project-codeflare/appwrapper@v1.2.0"},
	{name: "spark", module: "github.com/kubeflow/spark-operator/v2@v2.5.0"},
	{
		name: "clusterapi", module: clusterAPI.module, mod: clusterAPI.mod,
	},
	{name: "mpi", module: "github.com/kubeflow/mpi-operator@v0.8.0"},
}

// where is the package of the files in a copy.
const where = "internal/doctortest"

// copied returns the copy with the files.
func (o examined) copied(t *testing.T) string {
	t.Helper()
	f := foreign{module: o.module, mod: o.mod, files: map[string]string{}, packages: []string{"./" + where}, kept: "doctor-"}
	for _, pattern := range []string{"*.go", o.name + "/*.go"} {
		files, err := filepath.Glob(filepath.Join("testdata", "doctor", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f.files[filepath.Join(where, filepath.Base(file))] = string(text)
		}
	}
	return f.copied(t)
}

// TestDoctor_FindsTheBugsOfOperators examines operators in virtual time, and then shows the same bug of each on a
// real API server. docs/doctor-bugs.md describes the bugs.
func TestDoctor_FindsTheBugsOfOperators(t *testing.T) {
	t.Parallel()
	for _, o := range examinedOperators {
		t.Run(o.name, func(t *testing.T) {
			at := o.copied(t)
			binary := foreign{}.build(t, at, where)
			t.Run("doctor", func(t *testing.T) { o.examine(t, filepath.Join(at, where), binary) })
			t.Run("real", func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run=^TestBug_")
				cmd.Dir, cmd.Env = filepath.Join(at, where), append(os.Environ(), envtest.AssetsVariable+"="+realBinaries(t))
				said, err := cmd.CombinedOutput()
				if err != nil || strings.Contains(string(said), "--- SKIP") || strings.Contains(string(said), "no tests to run") {
					t.Errorf("%v\n%s", err, said)
				}
			})
		})
	}
}

// examine fails unless doctor finds the bug.
func (o examined) examine(t *testing.T, dir, binary string) {
	t.Helper()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestDoctor$", "-test.timeout=1h", "-doctor.out="+out)
	if o.plan != "" && !*examineAll {
		cmd.Args = append(cmd.Args, "-doctor.plan="+o.plan)
	}
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if *examineAll {
		t.Logf("%s", said)
	}
	text, failed := os.ReadFile(filepath.Join(out, "doctor.json"))
	if failed != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var report doctor.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if [3]string{string(f.Class), f.Kind, string(f.Pattern)} == o.bug {
			return
		}
	}
	t.Errorf("none of %d findings is %q\n%s", len(report.Findings), o.bug, said)
}
