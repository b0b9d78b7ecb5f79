// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/faults.md has a line for each row of the catalogue, and names each of
// the row's tests.
func TestFaults_EachRowIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			rows[strings.TrimSpace(cells[1])] = cells[4]
		}
	}
	tests, skipped := testNames(t, "*_test.go")
	real := realSpecs(t)
	for _, group := range []struct {
		letter string
		n      int
	}{{"A", 24}, {"B", 6}, {"C", 1}} {
		for n := range group.n {
			row := fmt.Sprint(group.letter, n+1)
			found := 0
			for _, test := range tests {
				if !strings.HasSuffix(test, "_"+row) {
					continue
				}
				found++
				name := "`" + test + "`"
				if skipped[test] {
					name += " (skipped)"
				}
				if !strings.Contains(rows[row], name) || !skipped[test] && strings.Contains(rows[row], name+" (skipped)") {
					t.Errorf("docs/faults.md: row %s names %s; want %s among them", row, rows[row], name)
				}
			}
			if found == 0 {
				t.Errorf("row %s has no test", row)
			}
			if says := strings.Contains(rows[row], "**real**"); says != real[row] {
				t.Errorf("docs/faults.md: row %s: says **real** is %v, specs with the label in integration: %v", row, says, real[row])
			}
		}
	}
	for _, elsewhere := range []string{"../../bridge", "../../client", "../../informer", "../../internal", "../../manager", "../../reconcile", ".."} {
		err := filepath.WalkDir(elsewhere, func(dir string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				more, _ := testNames(t, filepath.Join(dir, "*_test.go"))
				tests = append(tests, more...)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(strings.Join(tests, " ")+" ", name[1]+" ") {
			t.Errorf("docs/faults.md names %s, which is not there", name[1])
		}
	}
}

// realSpecs are the rows that label a spec on a real control plane.
func realSpecs(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../integration/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, label := range regexp.MustCompile(`\bLabel\(([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			for _, row := range regexp.MustCompile(`"([A-C][0-9]+)"`).FindAllStringSubmatch(label[1], -1) {
				rows[row[1]] = true
			}
		}
	}
	return rows
}

// testNames are the tests of the files, and which of them are skipped as a
// whole.
func testNames(t *testing.T, pattern string) (tests []string, skipped map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	skipped = map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)^func (Test[A-Za-z0-9_]+)\\(.*\n(\tt\\.Skip\\(\"not yet: )?").FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, m[1])
			skipped[m[1]] = m[2] != ""
		}
	}
	return tests, skipped
}
