// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// report returns the test's message about a failed run: the violations, the line that
// replays it, the fewest faults that cause it, where it differs from a correct run, and
// the files of its history. least is nil if the plan was not shrunk.
func (h *History) report(dir string, least *Shrunk) string {
	var text strings.Builder
	for _, v := range h.Violations {
		fmt.Fprintf(&text, "%s\n", v)
		if v.Event >= 0 && v.Event < len(h.Events) && h.Events[v.Event].What != Restless { // the text of Restless repeats it
			fmt.Fprintf(&text, "    %s\n", h.Events[v.Event])
		}
	}
	if least != nil {
		text.WriteString(least.String())
	}
	fmt.Fprintf(&text, "replay: %s\n", h.Replay())
	if h.Inexact != "" {
		fmt.Fprintf(&text, "inexact: another run of the seed may differ, run it more than once: %s\n", h.Inexact)
	}
	files, err := h.write(dir, least)
	if err != nil {
		fmt.Fprintf(&text, "the history could not be written: %v\n", err)
	}
	for _, file := range files {
		fmt.Fprintf(&text, "history: %s\n", file)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Replay returns the command line that runs this seed again.
func (h *History) Replay() string {
	names := strings.Split(h.Test, "/")
	if last := len(names) - 1; strings.HasPrefix(names[last], "seed=") {
		names = names[:last]
	}
	for i, name := range names {
		names[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	return fmt.Sprintf("go test -run '%s' -sim.seed=%#x", strings.Join(names, "/"), h.Seed)
}

// Differs describes where again, another history of the same seed, differs from h, and
// returns the index of the event. Empty: nowhere. Events that Hash ignores do not
// count.
func (h *History) Differs(again *History) (how string, event int) {
	if h.Hash() == again.Hash() {
		return "", -1
	}
	here, there := h.hashedEvents(), again.hashedEvents()
	for n, i := range here {
		if n == len(there) {
			return "the other ends before\n    " + h.Events[i].String(), i
		}
		e, other := h.Events[i], again.Events[there[n]]
		if e.Text, other.Text = "", ""; !reflect.DeepEqual(e, other) {
			return fmt.Sprintf("here\n    %s\nand there\n    %s", h.Events[i], again.Events[there[n]]), i
		}
	}
	return "the other continues", -1
}

// compare adds a violation if the same seed has another history.
func (h *History) compare(again *History) {
	if how, event := h.Differs(again); how != "" && h.Inexact == "" {
		h.violate("K1", "the same seed has led to another history: "+how+
			"\nthe run is not deterministic: check map iteration, global random sources, and goroutines that share an instant", event)
	}
}

//go:embed timeline.html
var timeline string

// Write writes the history into dir, as JSON and as a self-contained HTML page, and
// returns the two files.
func (h *History) Write(dir string) (files []string, err error) { return h.write(dir, nil) }

// write is Write, with a page of the run with the fewest faults, if it is known where that
// differs from a correct run.
func (h *History) write(dir string, least *Shrunk) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return nil, err
	}
	stem := filepath.Join(dir, fmt.Sprintf("%s-seed-%#x", strings.Map(plain, strings.Split(h.Test, "/")[0]), h.Seed))
	shows, good := h, (*History)(nil)
	if least != nil && least.Good != nil {
		shows, good = least.Least, least.Good
	}
	page, err := shows.page(good)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct{ name, text string }{{stem + ".json", string(text)}, {stem + ".html", page}} {
		if err := os.WriteFile(file.name, []byte(file.text), 0o644); err != nil {
			return files, err
		}
		files = append(files, file.name)
	}
	return files, nil
}

func (h *History) page(good *History) (string, error) {
	opens, err := json.Marshal(h.focusOn(good))
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(h) // escapes <, > and &, so that no text ends the script
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(
		"{{title}}", html.EscapeString(fmt.Sprintf("%s, seed %#x", h.Test, h.Seed)),
		"{{replay}}", html.EscapeString(h.Replay()),
		"{{inexact}}", html.EscapeString(h.Inexact),
		"{{focus}}", string(opens),
		"{{data}}", string(data),
	).Replace(timeline), nil
}

func plain(r rune) rune {
	if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return r
	}
	return '_'
}

// artifacts returns the directory for histories of failing runs: -sim.out, the test's
// artifact directory with -artifacts, or a new one.
func artifacts(t *testing.T) string {
	if *outDir != "" {
		return *outDir
	}
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return t.ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "flyball-sim-")
	if err != nil {
		return os.TempDir()
	}
	return dir
}
