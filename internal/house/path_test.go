// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var measurePath = flag.Bool("path", false, "count the files and functions that run for each watch event (make path)")

// What a reader follows to learn what happens to a watch event: each function of the library that
// runs once more for each further event, from the bytes of the answer to the reconciler.
func TestHouse_PathOfAWatchEvent(t *testing.T) {
	if !*measurePath {
		t.Skip("make path runs it, for a minute")
	}
	const few, many = 10, 110
	before, after := coverage(t, few), coverage(t, many)
	files, functions := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() || within(f.dir, "simulate") {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			from, to := f.fset.Position(fn.Pos()).Line, f.fset.Position(fn.End()).Line
			for line, n := range after[f.path] {
				if from <= line && line <= to && n-before[f.path][line] >= many-few {
					files[f.path], functions[fmt.Sprintf("%s:%d %s", f.path, from, fn.Name.Name)] = true, true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		t.Log(name)
	}
	t.Logf("%d files, %d functions", len(files), len(functions))
	if len(files) == 0 {
		t.Error("no file runs for an event; this test looks at nothing")
	}
}

// coverage returns how often each block ran, by file and first line, when a manager received that
// many events.
func coverage(t *testing.T, events int) map[string]map[int]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestPath_EachEventIsReconciled$", "-covermode=atomic",
		"-coverpkg="+module+"/...", "-coverprofile="+profile, "./simulate/conformance", fmt.Sprintf("-path.events=%d", events))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counts := map[string]map[int]int{}
	for s := bufio.NewScanner(file); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		name = strings.TrimPrefix(name, module+"/")
		var line, column, toLine, toColumn, statements, n int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &line, &column, &toLine, &toColumn, &statements, &n); err != nil {
			continue // the mode
		}
		if counts[name] == nil {
			counts[name] = map[int]int{}
		}
		counts[name][line] = max(counts[name][line], n)
	}
	return counts
}
