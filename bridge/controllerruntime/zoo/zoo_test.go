// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

var (
	all     = flag.Bool("zoo.all", false, "examine the operator with each bug, try each finding with the bridge too, and print a table")
	one     = flag.String("zoo.only", "", "examine the bugs whose names contain one of these texts: a,b")
	budget  = flag.Duration("zoo.budget", 10*time.Minute, "how long to try plans for each bug")
	first   = flag.Bool("zoo.first", true, "stop at the first finding")
	table   = flag.String("zoo.table", "", "a file to append the rows of the table to")
	replays = flag.Int("zoo.replays", 100, "with -zoo.all, how often to replay each of several findings")
)

// read reads a file of testdata as an object.
func read(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// write writes an object as a file for the duration of the test.
func write(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "object.json")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// operatorWith returns the operator with a bug. Its spec has these fields and replicas.
func operatorWith(t *testing.T, names string, b plant) doctor.Operator {
	t.Helper()
	crd, sample := read(t, "crd.yaml"), read(t, "sample.yaml")
	has := append(strings.Fields(names), "replicas")
	only := func(fields map[string]any) map[string]any {
		maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(has, name) })
		return fields
	}
	version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
	fields, _, err := unstructured.NestedMap(version, path...)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedMap(version, only(fields), path...); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(has, storageField) {
		required := []string{"schema", "openAPIV3Schema", "properties", "spec", "required"}
		if err := unstructured.SetNestedStringSlice(version, []string{"replicas", storageField}, required...); err != nil {
			t.Fatal(err)
		}
	}
	spec := only(sample.Object["spec"].(map[string]any))
	if !slices.Contains(has, storageField) {
		spec["replicas"] = int64(1) // it has no volumes
	}
	op := doctor.Operator{
		Main: mainOf(b, false), CRDs: []string{write(t, crd)}, Samples: []string{write(t, sample)},
		Budget: *budget, First: *first,
	}
	if *all {
		op.Remedies = map[string]func(context.Context, *rest.Config) error{"bridge": mainOf(b, true)}
	}
	return op
}

func TestZoo_TheRightOperatorHasNoFinding(t *testing.T) {
	for _, fields := range []string{
		"arbiter", "storage image", "storage config maxUnavailable", "proxy cfg tls uiPort",
		"labels annotations nodeSelector cpu env tolerations backup uiPort config image",
	} {
		t.Run(strings.ReplaceAll(fields, " ", "-"), func(t *testing.T) {
			if !*all && fields != "arbiter" {
				t.Skip("-zoo.all examines it")
			}
			op := operatorWith(t, fields, plant{})
			if !*all {
				op.MostPlans = 15
			}
			r := doctor.Examine(t, op)
			for _, found := range r.Findings {
				t.Errorf("%s by %s: %s\n%s\n%s", found.Class, found.Pattern, found.Text, found.Plan,
					strings.Join(found.Story, "\n"))
			}
			if r.Ran == 0 || len(r.Skipped) > 0 {
				t.Errorf("%d plans were run, and these were not judged: %v", r.Ran, r.Skipped)
			}
			t.Logf("%d of %d plans in %v, %d missed; %v", r.Ran, r.Plans, r.Took, r.Missed, r.Patterns)
		})
	}
}

func TestZoo_FindsPlantedBugs(t *testing.T) {
	some := []string{"rabbitmq-operator 648", "K8SPXC-896", "773", "474"} // these are found soon
	if *one != "" {
		some = strings.Split(*one, ",")
	}
	for _, b := range slices.Concat(direct, declarative) {
		matches := func(text string) bool { return strings.Contains(b.id, text) }
		if (!*all || *one != "") && !slices.ContainsFunc(some, matches) {
			continue
		}
		t.Run(b.name(), func(t *testing.T) {
			began := busy()
			r := doctor.Examine(t, operatorWith(t, b.fields, b.plant))
			used := (busy() - began).Round(time.Second)
			expected := func(f *doctor.Finding) bool { return slices.Contains(b.classes, f.Class) }
			row := fmt.Sprintf("%s|%s|missed||%d of %d|%v", b.id, b.pattern, r.Ran, r.Plans, used)
			if at := slices.IndexFunc(r.Findings, expected); at >= 0 {
				f := r.Findings[at]
				row = fmt.Sprintf("%s|%s|%s|%s|%d of %d|%v|%v|%s", b.id, b.pattern, f.Class, f.Pattern,
					f.After, r.Plans, used, f.Remedies, f.Text)
			} else {
				t.Errorf("there is no finding of %v among %d", b.classes, len(r.Findings))
			}
			for _, f := range r.Findings {
				t.Logf("%s by %s: %s\n  %s\n  gone with %v", f.Class, f.Pattern, f.Text, f.Plan, f.Remedies)
			}
			t.Log(row)
			appendRow(t, row)
		})
	}
}

func (b bug) name() string { return strings.NewReplacer(" ", "-", "/", "-").Replace(b.id) }

// The command that a finding names shows it again, each time, in another process.
func TestZoo_FindingsReplay(t *testing.T) {
	again := []string{"K8SPXC-979", "K8SPXC-897", "K8SSAND-559", "eck 5249", "nifikop 49", "casskop 342", "rabbitmq-operator 653", "cass-operator 330", "redis-operator 381"}
	wanted := *replays
	if !*all {
		again, wanted = again[:1], 2
	}
	for _, b := range slices.Concat(direct, declarative) {
		if !slices.ContainsFunc(again, func(text string) bool { return strings.Contains(b.id, text) }) {
			continue
		}
		t.Run(b.name(), func(t *testing.T) {
			op := operatorWith(t, b.fields, b.plant)
			if plan := flag.Lookup("doctor.plan").Value.String(); plan != "" {
				doctor.Test(t, op)
				return
			}
			op.First = true
			r := doctor.Examine(t, op)
			if len(r.Findings) == 0 {
				t.Fatalf("there is no finding to replay after %d plans", r.Ran)
			}
			f, shown := r.Findings[0], 0
			args := strings.Fields(strings.NewReplacer("go test -run ", "-test.run=", "'", "").Replace(f.Replay))
			for range wanted {
				text, err := exec.CommandContext(t.Context(), os.Args[0], append(args, "-zoo.all")...).CombinedOutput()
				if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && strings.Contains(string(text), "["+f.ID+"]") {
					shown++
				} else {
					t.Logf("%v: %v\n%s", args, err, text)
				}
			}
			if shown != wanted {
				t.Errorf("%q shows %s by %s in %d of %d runs", f.Replay, f.Class, f.Pattern, shown, wanted)
			}
			appendRow(t, fmt.Sprintf("replay|%s|%s|%s|%d of %d", b.id, f.Class, f.Pattern, shown, wanted))
		})
	}
}

func appendRow(t *testing.T, row string) {
	t.Helper()
	if *table == "" {
		return
	}
	file, err := os.OpenFile(*table, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := fmt.Fprintln(file, row); err != nil {
		t.Error(err)
	}
}
