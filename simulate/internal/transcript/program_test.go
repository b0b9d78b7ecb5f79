// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/transcript"
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

// TestBroken plays each case with its bodies broken. Status and reason equal those of the
// real server; the number of different messages is that in FIDELITY.md.
func TestBroken(t *testing.T) {
	cases, err := transcript.Load(os.DirFS("testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	broken := transcript.BrokenCases(cases)
	words, played := 0, 0
	compare(t, broken, func(got, want []transcript.Entry) (lines []string) {
		played++
		for _, line := range transcript.Diff(got, want) {
			if strings.Contains(line, ".body..message: ") {
				words++
				continue
			}
			lines = append(lines, line)
		}
		return lines
	})
	says := fmt.Sprintf("Of the broken bodies %d are refused with another message.", words)
	if played == len(broken) && !strings.Contains(string(page), says) { // otherwise -run has selected some
		t.Errorf("FIDELITY.md does not have the figure as it is: %s", says)
	}
}
