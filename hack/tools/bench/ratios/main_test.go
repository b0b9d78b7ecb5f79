// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRun_PrintsMediansAndRatios(t *testing.T) {
	const in = `goos: linux
BenchmarkQueue_Add/flyball-2         	 1685512	       200 ns/op	       0 B/op
BenchmarkQueue_Add/flyball-2         	 1685512	       100 ns/op	       0 B/op
BenchmarkQueue_Add/flyball-2         	 1685512	       110 ns/op	       0 B/op
BenchmarkQueue_Add/client-go-2       	  639861	       330 ns/op	      32 B/op
BenchmarkQueue_Contended/4x4/flyball-keys-16   5   2.5 M/s
BenchmarkQueue_Contended/4x4/client-go-16      5   1.0 M/s
PASS
`
	const want = `| workload | unit | ours | client-go | ours is |
|---|---|---|---|---|
| Queue_Add | ns/op | 110 | 330 | 3x |
| Queue_Add | B/op | 0 | 32 | none against some |
| Queue_Contended/4x4-keys | M/s | 2.5 | 1 | 2.5x |
`
	var out strings.Builder
	if err := run(strings.NewReader(in), &out); err != nil || out.String() != want {
		t.Errorf("run = %v, printed\n%swant\n%s", err, out.String(), want)
	}
	if err := run(strings.NewReader("PASS\n"), &out); err == nil {
		t.Error("run of no benchmarks reports no error")
	}
	if err := run(strings.NewReader(in+"--- FAIL: BenchmarkX/flyball\nFAIL\n"), &out); err == nil {
		t.Error("run of benchmarks of which one failed reports no error")
	}
	if err := run(strings.NewReader("BenchmarkX/flyball-2 1 many ns/op\n"), &out); err == nil {
		t.Error("run of a line that cannot be read reports no error")
	}
}
