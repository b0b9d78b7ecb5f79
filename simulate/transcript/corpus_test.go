// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/transcript"
)

const (
	corpusDir     = "testdata/corpus"
	corpusAtLeast = 300
)

// An ordinary object is created, and what is stored is what a real server stores.
func TestCorpus_StoredAsByARealServer_S25(t *testing.T) {
	cases := corpus(t, "corpus/")
	if len(cases) < corpusAtLeast {
		t.Errorf("the corpus has %d manifests, want at least %d", len(cases), corpusAtLeast)
	}
	for _, d := range playCorpus(t, cases) {
		t.Errorf("%s (got: the simulated server, want: a real one):\n  %s", d.name, strings.Join(d.lines, "\n  "))
	}
}

// The corpus has each built-in kind that a person creates.
func TestCorpus_HasEachKind(t *testing.T) {
	table, err := os.ReadFile(corpusDir + "/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]bool{}
	for _, c := range corpus(t, "corpus/") {
		var made struct{ APIVersion, Kind string }
		if err := json.Unmarshal([]byte(strings.ReplaceAll(c.Steps[len(c.Steps)-1].Body, "$$", "$")), &made); err != nil {
			t.Fatal(err)
		}
		created[made.APIVersion+" "+made.Kind] = true
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !created[words[0]+" "+words[1]] {
			t.Errorf("no manifest of kind %s %s", words[0], words[1])
		}
	}
	served, err := os.ReadFile("../builtin_kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(served)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		object := f[7] == "" || strings.Contains(f[7], ",") && strings.Contains(f[7], "create")
		if object && f[2] != "PodCertificateRequest" && !strings.Contains(string(table), "\n"+f[0]+" "+f[2]+" "+f[1]+" ") {
			t.Errorf("kinds.txt does not have %s %s", f[0], f[2])
		}
	}
}

// corpus is the cases of the corpus whose names begin with area.
func corpus(t *testing.T, area string) []transcript.Case {
	t.Helper()
	cases, err := transcript.Corpus(os.DirFS(corpusDir))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(cases, func(c transcript.Case) bool { return !strings.HasPrefix(c.Name, area) })
}

// difference is a case that the simulated server answers in its own way.
type difference struct {
	name, verdict string
	lines         []string
}

// playCorpus plays cases to one simulated server, and compares the answers with
// the transcripts, but for the words of refusals.
func playCorpus(t *testing.T, cases []transcript.Case) (found []difference) {
	t.Helper()
	known, err := transcript.ReadLibrary(*golden)
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	simulated(t, func(t *testing.T, target transcript.Target) {
		for _, c := range cases {
			want, ok := known.Entries(c.Name)
			if !ok {
				t.Fatalf("%s: no transcript of the real server; record it with: go test ./simulate/transcript/recorded -run TestRealCorpus -update", c.Name)
			}
			got, err := transcript.Run(t.Context(), target, c, transcript.Namespace(c.Name))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if lines := transcript.DiffButWords(got, want); len(lines) > 0 {
				found = append(found, difference{c.Name, verdict(got, want), lines})
			} else if len(transcript.Diff(got, want)) > 0 {
				words++
			}
		}
	})
	t.Logf("%d manifests, %d differ, %d in words alone", len(cases), len(found), words)
	return found
}

// verdict says in a word how an answer differs.
func verdict(got, want []transcript.Entry) string {
	is, should := got[len(got)-1].Status, want[len(want)-1].Status
	switch {
	case should < 300 && is >= 300:
		return "refused"
	case should >= 300 && is < 300:
		return "accepted"
	case should != is:
		return "status"
	case should >= 300:
		return "causes"
	}
	return "stored"
}
