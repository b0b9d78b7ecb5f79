// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

var examineFor = flag.Duration("examine", 5*time.Minute, "how long doctor tries plans on each operator; the findings are printed with -v")

// copiedOperator is an operator that doctor examines in a copy. real_test.go and the files of testdata/doctor/NAME run it, in a
// package of a copy of its module, because its controllers are internal packages.
type copiedOperator struct {
	name string
	foreign
	bugs []bug
}

// bug is a finding: a part of its texts, and what shows it.
type bug struct {
	class   doctor.Class
	text    string
	pattern doctor.Pattern
}

var examinedOperators = []copiedOperator{
	{
		name: "kubegreen", foreign: foreign{module: "github.com/kube-green/kube-green@v0.7.1"},
		bugs: []bug{{doctor.OtherEnd, "Deployment.apps default/web: spec.replicas is 0, and would be 3", doctor.Intermediate}},
	},
	{
		name: "appwrapper", foreign: foreign{module: "github.com/project-codeflare/appwrapper@v1.2.0"},
		bugs: []bug{{doctor.TooMany, "there are 2 of Deployment.apps default/serve-* at one time", doctor.Intermediate}},
	},
	{
		name: "clusterapi", foreign: foreign{module: clusterAPI.module, mod: clusterAPI.mod},
		bugs: []bug{{doctor.OtherEnd, "TestMachine.infrastructure.cluster.x-k8s.io default/workers-* is missing", doctor.LostAnswer}},
	},
	{
		name: "spark", foreign: foreign{
			module: "github.com/kubeflow/spark-operator/v2@v2.5.0",
			// Its replacements pin older libraries of Kubernetes.
			mod: []string{"-dropreplace=k8s.io/api", "-dropreplace=k8s.io/apiextensions-apiserver", "-dropreplace=k8s.io/apimachinery",
				"-dropreplace=k8s.io/apiserver", "-dropreplace=k8s.io/client-go", "-dropreplace=k8s.io/component-base", "-dropreplace=k8s.io/pod-security-admission"},
		},
		bugs: []bug{{doctor.OtherEnd, "at the end SparkApplication.sparkoperator.k8s.io default/pi-", doctor.Intermediate}},
	},
	{
		name: "mpi", foreign: foreign{module: "github.com/kubeflow/mpi-operator@v0.8.0"},
		bugs: []bug{{doctor.TooMany, "Job.batch default/pi-launcher is run twice", doctor.Stale}},
	},
	{
		name: "solr", foreign: foreign{module: "github.com/apache/solr-operator@v0.9.1"},
		bugs: []bug{{doctor.OtherEnd, "Secret default/search-solrcloud-security-bootstrap is missing", doctor.Intermediate}},
	},
	{
		name: "rabbitmq", foreign: foreign{
			module: rabbitMQ.module,
			// It asks the brokers, which are not there.
			swaps: map[string][]swap{rabbitMQSuite + "/rabbitmqcluster_controller.go": {
				{"if err := r.updateQuorumStatus(ctx, rabbitmqCluster); err != nil {", "if err := ctx.Err(); err != nil {", 1},
			}},
		},
		bugs: []bug{
			{doctor.OtherEnd, "lastRestartAt is not there", doctor.Intermediate},
			{doctor.NotUndone, "Service default/mq: metadata.annotations", doctor.Declarative},
		},
	},
}

// where is the package of the files in a copy.
const where = "internal/doctortest"

// copied returns the copy with the files.
func (o copiedOperator) copied(t *testing.T) string {
	t.Helper()
	f := o.foreign
	f.files, f.packages, f.kept = map[string]string{}, []string{"./" + where}, "doctor-"
	files, err := filepath.Glob(filepath.Join("testdata", "doctor", o.name, "*.go"))
	must(t, err)
	for _, file := range append(files, "real_test.go") {
		text, err := os.ReadFile(file)
		must(t, err)
		f.files[filepath.Join(where, filepath.Base(file))] = string(text)
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
				cmd.Dir = filepath.Join(at, where)
				said, err := cmd.CombinedOutput()
				if err != nil || strings.Contains(string(said), "no tests to run") {
					t.Errorf("%v\n%s", err, said)
				}
			})
		})
	}
}

// examine fails unless doctor finds the bugs.
func (o copiedOperator) examine(t *testing.T, dir, binary string) {
	t.Helper()
	out := t.TempDir()
	args := []string{"-test.run=^TestDoctor$", "-test.timeout=1h", "-doctor.out=" + out, "-doctor.budget=" + examineFor.String()}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	said, failed := cmd.CombinedOutput()
	if testing.Verbose() {
		t.Logf("%s", said)
	}
	text, err := os.ReadFile(filepath.Join(out, "doctor.json"))
	if err != nil {
		t.Fatalf("%v\n%s", failed, said)
	}
	var report doctor.Report
	must(t, json.Unmarshal(text, &report))
	for _, b := range o.bugs {
		if !slices.ContainsFunc(report.Findings, b.is) {
			t.Errorf("none of %d findings is %q\n%s", len(report.Findings), b, said)
		}
	}
}

func (b bug) is(f *doctor.Finding) bool {
	return f.Class == b.class && slices.Contains(f.Patterns, b.pattern) && strings.Contains(strings.Join(append(f.Also, f.Text), "\n"), b.text)
}
