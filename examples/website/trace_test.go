// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// span has the fields of a line that the test reads.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
}

// A trace leads from the event to the request, and the file has the buffered spans after
// the process has ended.
func TestProcess_TracesFromTheEventToTheRequest(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "spans.json")
	if out, err := m.website(t, nil, "-demo", "-trace", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	spans := map[string]span{}
	for lines := json.NewDecoder(in); ; {
		var s span
		if err := lines.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("after %d spans: %v", len(spans), err)
		}
		spans[s.SpanContext.SpanID] = s
	}
	var paths []string
	for _, s := range spans {
		path := s.Name
		for up := s; up.Parent.SpanID != strings.Repeat("0", 16); path = up.Name + " > " + path {
			parent, ok := spans[up.Parent.SpanID]
			if !ok || parent.SpanContext.TraceID != s.SpanContext.TraceID {
				t.Fatalf("the parent of %q is not in the file: it was not flushed", path)
			}
			up = parent
		}
		paths = append(paths, path)
	}
	for _, want := range []string{
		"event kind Website > reconcile website > PATCH deployments.apps",
		"event kind Website > reconcile website > DELETE services", // of the last step
	} {
		found := false
		for _, path := range paths {
			found = found || strings.HasPrefix(path, want)
		}
		if !found {
			t.Errorf("no span %q; there are\n%s", want, strings.Join(paths, "\n"))
		}
	}
	m.clean(t)
}

func TestProcess_ATraceThatCannotBeWrittenIsSaidAtOnce(t *testing.T) {
	m := newMachine(t)
	out, err := m.website(t, nil, "-demo", "-trace", filepath.Join(m.temp, "no", "spans")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "website: trace: open ") || strings.Contains(string(out), "applied") {
		t.Errorf("%v, want an error that names the file:\n%s", err, out)
	}
}
