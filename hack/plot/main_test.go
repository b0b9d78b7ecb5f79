// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is drawn into the golden files")

func TestRun_DrawsATable(t *testing.T) {
	golden(t, "testdata/table.md", "testdata/table.svg", "")
}

// The plot of docs/performance.md shows the table of that page.
func TestRun_PerformancePageShowsItsTable(t *testing.T) {
	golden(t, "../../docs/performance.md", "../../docs/performance.svg", "")
	golden(t, "../../bridge/controllerruntime/README.md", "../../bridge/controllerruntime/memory.svg", "")
}

// So do those of docs/memory.md.
func TestRun_MemoryPageShowsItsTable(t *testing.T) {
	golden(t, "../../docs/memory.md", "../../docs/memory.svg", "")
	golden(t, "../../docs/memory.md", "../../docs/memory-growth.svg", "objects")
}

// So do those of docs/scale.md.
func TestRun_ScalePageShowsItsTables(t *testing.T) {
	golden(t, "../../docs/scale.md", "../../docs/scale.svg", "replicas")
	golden(t, "../../docs/scale.md", "../../docs/scale-requests.svg", "replicas at rest")
}

func golden(t *testing.T, from, to, by string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var got strings.Builder
	if err := run(in, &got, by != "", by); err != nil {
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
		flags := ""
		if by != "" {
			flags = fmt.Sprintf("-growth -by %q ", by)
		}
		t.Errorf("%s is not what %s gives: run go run ./hack/plot %s<%s >%s in the root", to, from, flags, strings.TrimPrefix(from, "../../"), strings.TrimPrefix(to, "../../"))
	}
}

func TestRun_RefusesWhatIsNoTableOfRatios(t *testing.T) {
	const head = "| workload | unit | ours | client-go | ours is |\n|---|---|---|---|---|\n"
	for _, c := range []struct {
		name, page, want string
		lines            bool
	}{
		{"no table", "# Performance\n", "there is none", false},
		{"another table", "| fault | ours |\n|---|---|\n| kill | 1 |\n", "there is none", false},
		{"no rows", head + "\n", "no rows", false},
		{"a cell too few", head + "| add | ns | 1 | 2 |\n", "4 cells, want 5", false},
		{"a ratio that the figures do not make", head + "| add | ns | 1 | 2 | 3x |\n", "make 2x, the table has 3x", false},
		{"more per second is better", head + "| add | M/s | 1 | 2 | 2x |\n", "make 0.5x", false},
		{"a figure with its unit", head + "| add | ns | 1 ns | 2 | 2x |\n", "invalid syntax", false},
		{"no growth", head, "there is none", true},
		{"growth of one row", "| objects | a |\n|---|---|\n| 1 | 2 |\n", "two rows", true},
		{"growth with a cell too few", "| objects | a | b |\n|---|---|---|\n| 1 | 2 |\n", "2 cells, want 3", true},
		{"growth from nothing", "| objects | a |\n|---|---|\n| 0 | 2 |\n", "not positive", true},
		{"growth in words", "| objects | a |\n|---|---|\n| 1 | some |\n", "invalid syntax", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := run(strings.NewReader(c.page), &out, c.lines, ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run = %v, want an error that has %q", err, c.want)
			}
		})
	}
}
