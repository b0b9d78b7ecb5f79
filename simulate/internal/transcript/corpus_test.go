// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/transcript"
)

const (
	corpusDir     = "testdata/corpus"
	corpusAtLeast = 300
)

// Ordinary objects are stored as a real server stores them.
func TestCorpus_StoredAsByARealServer_S25(t *testing.T) {
	cases := corpus(t, "corpus/")
	if len(cases) < corpusAtLeast {
		t.Errorf("the corpus has %d manifests, want at least %d", len(cases), corpusAtLeast)
	}
	for _, d := range playCorpus(t, cases) {
		t.Errorf("%s (got: the simulated server, want: a real one):\n  %s", d.name, strings.Join(d.lines, "\n  "))
	}
}

// A server allocates addresses and node ports at random from the upper bands of their ranges first (KEP-3070 and KEP-3668).
// Cases run at the same time, so what a manifest fixes lies in the lower bands of the real server's 10.0.0.0/24 and
// 30000-32767, and no two manifests fix the same.
func TestCorpus_FixedAddressesAreNotAllocatedAtRandom(t *testing.T) {
	type port struct{ NodePort int }
	fixed := map[string]string{}
	for _, c := range corpus(t, "corpus/") {
		var made struct {
			Kind string
			Spec struct {
				ClusterIP  string
				ClusterIPs []string
				Ports      []port
			}
		}
		body := strings.ReplaceAll(c.Steps[len(c.Steps)-1].Body, "$$", "$")
		if !strings.Contains(body, `"kind":"Service"`) {
			continue
		}
		if err := json.Unmarshal([]byte(body), &made); err != nil {
			t.Fatal(err)
		}
		fix := func(value string, inBand bool) {
			if !inBand {
				t.Errorf("%s fixes %s, which the real server may have allocated to another case", c.Name, value)
			}
			if other, taken := fixed[value]; taken {
				t.Errorf("%s and %s fix the same %s", c.Name, other, value)
			}
			fixed[value] = c.Name
		}
		addresses := append(made.Spec.ClusterIPs, made.Spec.ClusterIP)
		slices.Sort(addresses)
		for _, address := range slices.Compact(addresses) {
			if ip, err := netip.ParseAddr(address); err == nil {
				fix(address, ip.Compare(netip.MustParseAddr("10.0.0.2")) >= 0 && ip.Compare(netip.MustParseAddr("10.0.0.16")) <= 0)
			}
		}
		for _, p := range made.Spec.Ports {
			if p.NodePort != 0 {
				fix(strconv.Itoa(p.NodePort), p.NodePort >= 30000 && p.NodePort < 30086)
			}
		}
	}
	if len(fixed) == 0 {
		t.Error("no manifest fixes an address or a node port")
	}
}

// The corpus has each built-in kind that people create.
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
	served, err := os.ReadFile("../kinds/builtin_kinds.txt")
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

// corpus returns the cases of the corpus whose names begin with area.
func corpus(t *testing.T, area string) []transcript.Case {
	t.Helper()
	cases, err := transcript.Corpus(os.DirFS(corpusDir))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(cases, func(c transcript.Case) bool { return !strings.HasPrefix(c.Name, area) })
}

// difference is a case in which the answer of the simulated server differs.
type difference struct {
	name, verdict string
	lines         []string
}

// playCorpus plays cases to one simulated server and compares the answers with the
// transcripts, except for the messages of refusals.
func playCorpus(t *testing.T, cases []transcript.Case) []difference {
	t.Helper()
	return playCorpusBy(t, cases, transcript.DiffButWords)
}

// playCorpusBy is playCorpus with another comparison.
func playCorpusBy(t *testing.T, cases []transcript.Case, differ func(got, want []transcript.Entry) []string) (found []difference) {
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
				t.Fatalf("%s: no transcript of the real server; record it with: go test ./simulate/internal/transcript/recorded -run TestRealCorpus -update", c.Name)
			}
			got, err := transcript.Run(t.Context(), target, c, transcript.Namespace(c.Name))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if lines := differ(got, want); len(lines) > 0 {
				found = append(found, difference{c.Name, verdict(got, want), lines})
			} else if len(transcript.Diff(got, want)) > 0 {
				words++
			}
		}
	})
	t.Logf("%d manifests, %d differ, %d in words alone", len(cases), len(found), words)
	return found
}

// verdict summarizes in one word how an answer differs.
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

var writeDifferences = flag.Bool("differences", false, "write "+differencesFile)

const differencesFile = corpusDir + "/differences.txt"

// The simulated server refuses an invalid manifest with the same status and for the same
// fields as a real one. The list of exceptions is exact.
func TestCorpus_RefusedAsByARealServer_S26(t *testing.T) {
	var got []string
	for _, d := range playCorpus(t, corpus(t, "refused/")) {
		got = append(got, d.verdict+" "+strings.TrimPrefix(d.name, "refused/"))
		if testing.Verbose() {
			t.Logf("%s:\n  %s", d.name, strings.Join(d.lines, "\n  "))
		}
	}
	slices.Sort(got)
	page, err := os.ReadFile("../../FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	played := len(corpus(t, "refused/"))
	if line := fmt.Sprintf("| Refused | %d | %d | %d |\n", played, played, len(got)); !strings.Contains(string(page), line) {
		t.Errorf("FIDELITY.md does not have the figures as they are:\n%s", line)
	}
	if *writeDifferences {
		if err := os.WriteFile(differencesFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range got {
		if !slices.Contains(known, line) {
			t.Errorf("the simulated server answers otherwise than a real one, and %s does not list it: %s", differencesFile, line)
		}
	}
	for _, line := range known {
		if line != "" && !slices.Contains(got, line) {
			t.Errorf("%s lists what has come to agree; remove the line: %s", differencesFile, line)
		}
	}
}

// The errors of Pod Security are those of a real server, word for word.
func TestCorpus_PodSecurity_S27(t *testing.T) {
	cases := slices.DeleteFunc(corpus(t, "refused/pods/"), func(c transcript.Case) bool {
		return !strings.HasPrefix(c.Name, "refused/pods/restricted ") && !strings.HasPrefix(c.Name, "refused/pods/baseline ")
	})
	if len(cases) < 20 {
		t.Fatalf("%d Pods that fall short of a standard, want at least 20", len(cases))
	}
	for _, d := range playCorpusBy(t, cases, transcript.Diff) {
		t.Errorf("%s (got: the simulated server, want: a real one):\n  %s", d.name, strings.Join(d.lines, "\n  "))
	}
}
