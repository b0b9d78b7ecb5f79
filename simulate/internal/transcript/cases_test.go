// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/transcript"
)

func TestCases(t *testing.T) {
	cases, err := transcript.Load(os.DirFS("testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, cases, transcript.Diff)
}

// compare plays cases to the simulated server and compares the answers with the transcripts
// and the ledger.
func compare(t *testing.T, cases []transcript.Case, differ func(got, want []transcript.Entry) []string) {
	t.Helper()
	known, err := transcript.ReadLibrary(*golden)
	if err != nil {
		t.Fatal(err)
	}
	ledger := differences(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			want, ok := known.Entries(c.Name)
			if !ok {
				t.Fatalf("no transcript of the real server; record it with: go test ./simulate/internal/transcript/recorded -run 'TestReal/cases/%s' -update", c.Name)
			}
			simulated(t, func(t *testing.T, target transcript.Target) {
				got, err := transcript.Run(t.Context(), target, c, transcript.Namespace(c.Name))
				diff := differ(got, want)
				if err != nil {
					diff = []string{err.Error()}
				}
				checkLedger(t, c.Name, ledger[c.Name], diff)
			})
		})
	}
}

// differences returns the ledger of known differences.
func differences(t *testing.T) map[string]transcript.Difference {
	t.Helper()
	text, err := os.ReadFile("../../FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := transcript.ParseLedger(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// checkLedger fails if a case differs and is not in the ledger, or is in the ledger and
// does not differ.
func checkLedger(t *testing.T, name string, known transcript.Difference, diff []string) {
	t.Helper()
	switch {
	case len(diff) > 0 && known.Case == "":
		t.Errorf("the simulated server (got) does not answer as the real one (want):\n  %s", strings.Join(diff, "\n  "))
	case len(diff) > 0 && testing.Verbose():
		t.Logf("known: %s: %s:\n  %s", known.What, known.Reason, strings.Join(diff, "\n  "))
	case len(diff) == 0 && known.Case != "":
		t.Errorf("%s has come to agree; take it off the ledger of FIDELITY.md", name)
	}
}

// TestFigures verifies the numbers in FIDELITY.md, and that the cases of the ledger exist.
func TestFigures(t *testing.T) {
	page, err := os.ReadFile("../../FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := transcript.Load(os.DirFS("testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := transcript.Programs(os.DirFS("testdata/cases"), transcript.CommittedSeeds)
	if err != nil {
		t.Fatal(err)
	}
	known, err := transcript.ReadLibrary("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	ledger := differences(t)
	for _, kind := range []struct {
		name  string
		cases []transcript.Case
	}{{"Cases", cases}, {"Programs", programs}, {"Broken", transcript.BrokenCases(cases)}, {"Corpus", corpus(t, "corpus/")}} {
		answers, differ := 0, 0
		for _, c := range kind.cases {
			entries, _ := known.Entries(c.Name)
			answers += len(entries)
			if ledger[c.Name].Case != "" {
				differ++
			}
			delete(ledger, c.Name)
		}
		if line := fmt.Sprintf("| %s | %d | %d | %d |\n", kind.name, len(kind.cases), answers, differ); !strings.Contains(string(page), line) {
			t.Errorf("FIDELITY.md does not have the figures as they are:\n%s", line)
		}
	}
	for name := range ledger {
		t.Errorf("the ledger has %s, which is no case", name)
	}
}
