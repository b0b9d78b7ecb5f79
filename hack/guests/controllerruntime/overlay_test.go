// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const here = "github.com/flyball-dev/flyball/hack/guests/controllerruntime"

// swap is a text of a suite, the number of its occurrences, and its replacement.
type swap struct {
	from, to string
	times    int
}

// many occurrences are a number that differs between minor versions.
const many = -1

// imported adds an import of the package underneath after another one.
func imported(other string) swap {
	return swap{`	"` + other + `"`, `	"` + other + "\"\n\t\"" + here + `/underneath"`, 1}
}

// onFlyball are the suites that are also built with flyball's informers under
// controller-runtime's cache, and all changes to them: the calls that create a cache. Go
// does not build changed files of the module cache, so the suites are built as packages of
// this module that exist only in the overlay.
var onFlyball = []struct {
	name, path string
	files      []string // of the package's tests, those that are built
	swaps      map[string][]swap
	leaveOut   string
}{
	{
		name: "cache", path: theirs + "cache",
		files: []string{"cache_suite_test.go", "cache_test.go", "informer_cache_test.go"},
		swaps: map[string][]swap{
			"cache_test.go": {
				{`(cache.New, `, `(underneath.New, `, 7},
				{` cache.New(`, ` underneath.New(`, 14},
				imported("sigs.k8s.io/controller-runtime/pkg/cache"),
			},
			"informer_cache_test.go": {
				{`cache.New(`, `underneath.New(`, 1},
				imported("sigs.k8s.io/controller-runtime/pkg/cache"),
			},
		},
	},
	{
		name: "jobset", path: "sigs.k8s.io/jobset/test/integration/controller",
		files: []string{"suite_test.go", "jobset_controller_test.go"},
		swaps: map[string][]swap{"suite_test.go": {
			{`ctrl.NewManager(`, `underneath.NewManager(`, 1},
			imported("sigs.k8s.io/controller-runtime/pkg/client"),
		}},
	},
	{
		name: "lws", path: "sigs.k8s.io/lws/test/integration/controllers",
		files: []string{"suite_test.go", "leaderworkerset_test.go"},
		swaps: map[string][]swap{"suite_test.go": {
			{`ctrl.NewManager(`, `underneath.NewManager(`, 1},
			imported("sigs.k8s.io/controller-runtime/pkg/client"),
		}},
		leaveOut: chance,
	},
}

func TestSuites_OnFlyballsInformers(t *testing.T) {
	t.Parallel()
	simulated := simulatedBinaries(t)
	for _, s := range onFlyball {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from := strings.TrimSpace(output(t, "go", "list", "-f", "{{.Dir}}", s.path))
			overlay := write(t, dir, from, s.name, s.files, s.swaps)
			built := &suite{name: s.name, dir: from, binary: filepath.Join(dir, "suite"), assets: s.name == "lws", leaveOut: s.leaveOut}
			output(t, "go", "test", "-vet=off", "-c", "-ldflags=-s -w "+noMetrics, "-overlay="+overlay, "-o", built.binary, "./suites/"+s.name)
			t.Run("simulated", func(t *testing.T) { t.Parallel(); hold(t, built.run(t, simulated), nil) })
			t.Run("real", func(t *testing.T) { t.Parallel(); hold(t, built.run(t, realBinaries(t)), nil) })
		})
	}
}

// write writes the files with their swaps applied into dir, with an overlay that places
// them in the package suites/name, and returns the overlay's path.
func write(t *testing.T, dir, from, name string, files []string, swaps map[string][]swap) string {
	t.Helper()
	pkg, err := filepath.Abs(filepath.Join("suites", name))
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, file)
		if err := os.WriteFile(to, []byte(changed(t, file, string(text), swaps[file])), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(pkg, file)] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed returns a file with its swaps applied.
func changed(t *testing.T, name, text string, swaps []swap) string {
	t.Helper()
	for _, s := range swaps {
		if n := strings.Count(text, s.from); n != s.times && (n < 2 || s.times != many) {
			t.Fatalf("%s has %q %d times, want %d: it makes its cache in another way", name, s.from, n, s.times)
		}
		text = strings.ReplaceAll(text, s.from, s.to)
	}
	return text
}
