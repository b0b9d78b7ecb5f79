// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is drawn into the golden files")

func TestRun_DrawsATable(t *testing.T) {
	golden(t, "testdata/table.md", "testdata/table.svg")
}

// The plot of docs/performance.md shows the table of that page.
func TestRun_PerformancePageShowsItsTable(t *testing.T) {
	golden(t, "../../docs/performance.md", "../../docs/performance.svg")
}

// So does that of docs/memory.md.
func TestRun_MemoryPageShowsItsTable(t *testing.T) {
	golden(t, "../../docs/memory.md", "../../docs/memory.svg")
}

func golden(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var got strings.Builder
	if err := run(in, &got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(to, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s is not what %s gives: run go run ./hack/plot <%s >%s in the root", to, from, strings.TrimPrefix(from, "../../"), strings.TrimPrefix(to, "../../"))
	}
}

func TestRun_RefusesWhatIsNoTableOfRatios(t *testing.T) {
	const head = "| workload | unit | ours | client-go | ours is |\n|---|---|---|---|---|\n"
	for _, c := range []struct{ name, page, want string }{
		{"no table", "# Performance\n", "there is none"},
		{"another table", "| fault | ours |\n|---|---|\n| kill | 1 |\n", "there is none"},
		{"no rows", head + "\n", "no rows"},
		{"a cell too few", head + "| add | ns | 1 | 2 |\n", "4 cells, want 5"},
		{"a ratio that the figures do not make", head + "| add | ns | 1 | 2 | 3x |\n", "make 2x, the table has 3x"},
		{"more per second is better", head + "| add | M/s | 1 | 2 | 2x |\n", "make 0.5x"},
		{"a figure with its unit", head + "| add | ns | 1 ns | 2 | 2x |\n", "invalid syntax"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := run(strings.NewReader(c.page), &out); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run = %v, want an error that has %q", err, c.want)
			}
		})
	}
}
