// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorded_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/transcript"
)

// namespace returns the namespace of a case. On a shared server it may exist from an
// earlier run.
func namespace(name string) string {
	if *server == "" {
		return transcript.Namespace(name)
	}
	return fmt.Sprintf("%s-%d", transcript.Namespace(name), os.Getpid())
}

// recording holds the answers of the real server to one test.
type recording struct {
	mu struct {
		sync.Mutex
		heard transcript.Library
	}
}

// recordOrCompare records the answers to a case, to be written later, or compares them
// with the earlier ones.
func (r *recording) recordOrCompare(t *testing.T, known transcript.Library, name string, got []transcript.Entry) {
	t.Helper()
	if *update {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mu.heard.Put(name, got)
		return
	}
	want, ok := known.Entries(name)
	if !ok {
		t.Fatal("there is no transcript; write it with make transcripts UPDATE=1")
	}
	if diff := transcript.Diff(got, want); len(diff) > 0 {
		t.Errorf("the real server (got) does not answer as the transcript (want) says; look whether the case depends on time or on other cases, else run make transcripts UPDATE=1:\n  %s", strings.Join(diff, "\n  "))
	}
}

// write adds the answers to the transcripts.
func (r *recording) write(t *testing.T, known transcript.Library) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := known.Add(r.mu.heard).Write(*golden); *update && err != nil {
		t.Error(err)
	}
}

// play plays all cases to the real server, several at a time.
func play(t *testing.T, cases []transcript.Case) {
	t.Helper()
	known, err := transcript.ReadLibrary(*golden)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	r.mu.heard = transcript.Library{}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				got, err := transcript.Run(t.Context(), realTarget(t), c, namespace(c.Name))
				if err != nil {
					t.Fatal(err)
				}
				r.recordOrCompare(t, known, c.Name, got)
			})
		}
	})
	r.write(t, known)
}

func TestReal(t *testing.T) {
	cases, err := transcript.Load(os.DirFS("../testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	play(t, cases)
}

func TestRealPrograms(t *testing.T) {
	cases, err := transcript.Programs(os.DirFS("../testdata/cases"), *seeds)
	if err != nil {
		t.Fatal(err)
	}
	play(t, cases)
}

func TestRealBroken(t *testing.T) {
	cases, err := transcript.Load(os.DirFS("../testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	play(t, transcript.BrokenCases(cases))
}

func TestRealCorpus(t *testing.T) {
	cases, err := transcript.Corpus(os.DirFS("../testdata/corpus"))
	if err != nil {
		t.Fatal(err)
	}
	play(t, cases)
}
