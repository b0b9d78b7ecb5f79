// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
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
	all     = flag.Bool("zoo.all", false, "examine the operator with each bug, and print a table")
	one     = flag.String("zoo.only", "", "examine the bugs whose names contain one of these texts: a,b")
	budget  = flag.Duration("zoo.budget", 10*time.Minute, "how long to try plans for each bug")
	bridged = flag.Bool("zoo.bridge", false, "try each finding with the bridge too")
	first   = flag.Bool("zoo.first", true, "stop at the first finding")
	table   = flag.String("zoo.table", "", "a file to append the rows of the table to")
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
	if *bridged {
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
				op.Budget = 15 * time.Second
			}
			r := doctor.Examine(t, op)
			for _, found := range r.Findings {
				t.Errorf("%s by %s: %s\n%s\n%s", found.Class, found.Pattern, found.Text, found.Plan,
					strings.Join(found.Story, "\n"))
			}
			if *all && r.Ran == 0 || len(r.Skipped) > 0 {
				t.Errorf("%d plans were run, and these were not judged: %v", r.Ran, r.Skipped)
			}
			t.Logf("%d of %d plans in %v, %d missed; %v", r.Ran, r.Plans, r.Took, r.Missed, r.Patterns)
		})
	}
}

func TestZoo_FindsPlantedBugs(t *testing.T) {
	some := []string{"eck 5249", "K8SPXC-896", "773", "474"} // these are found soon
	if *one != "" {
		some = strings.Split(*one, ",")
	}
	for _, b := range slices.Concat(direct, declarative) {
		matches := func(text string) bool { return strings.Contains(b.id, text) }
		if (!*all || *one != "") && !slices.ContainsFunc(some, matches) {
			continue
		}
		t.Run(strings.NewReplacer(" ", "-", "/", "-").Replace(b.id), func(t *testing.T) {
			r := doctor.Examine(t, operatorWith(t, b.fields, b.plant))
			expected := func(f *doctor.Finding) bool { return slices.Contains(b.classes, f.Class) }
			took := r.Took.Round(time.Second)
			row := fmt.Sprintf("%s|%s|missed||%d of %d|%v", b.id, b.pattern, r.Ran, r.Plans, took)
			if at := slices.IndexFunc(r.Findings, expected); at >= 0 {
				f := r.Findings[at]
				row = fmt.Sprintf("%s|%s|%s|%s|%d of %d|%v|%v|%s", b.id, b.pattern, f.Class, f.Pattern,
					f.After, r.Plans, took, f.Remedies, f.Text)
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
