// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/transcript"
)

var (
	golden = flag.String("golden", "testdata/golden", "the directory of the transcripts")
	seeds  = flag.Int("seeds", transcript.CommittedSeeds, "how many programs to draw and play")
)

func TestPrograms(t *testing.T) {
	cases, err := transcript.Programs(os.DirFS("testdata/cases"), *seeds)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, cases, transcript.Diff)
}

// TestBroken plays each case with its bodies broken. Status and reason are the
// real server's; its words may be others.
func TestBroken(t *testing.T) {
	cases, err := transcript.Load(os.DirFS("testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	words, bodies := 0, 0
	compare(t, transcript.BrokenCases(cases), func(got, want []transcript.Entry) (lines []string) {
		bodies += len(want)
		for _, line := range transcript.Diff(got, want) {
			if strings.Contains(line, ".body..message: ") {
				words++
				continue
			}
			lines = append(lines, line)
		}
		return lines
	})
	t.Logf("%d broken bodies, of which %d are refused in other words than the real server's", bodies, words)
}
