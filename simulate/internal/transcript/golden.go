// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Library holds transcripts: by area, and in it by the rest of the case's name. The zero
// value is empty and cannot be added to; Library{} can.
type Library map[string]map[string][]Entry

// ReadLibrary reads all areas from the files of dir.
func ReadLibrary(dir string) (Library, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	l := Library{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		area := strings.TrimSuffix(filepath.Base(file), ".txt")
		if l[area], err = parseArea(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return l, nil
}

// Write writes each area to a file of dir.
func (l Library) Write(dir string) error {
	for area, transcripts := range l {
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(transcripts)) {
			fmt.Fprintf(&out, "-- %s --\n", name)
			for _, e := range transcripts[name] {
				out.WriteString(e.yaml())
			}
		}
		if err := os.WriteFile(filepath.Join(dir, area+".txt"), []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Entries returns the transcript of a case, if there is one.
func (l Library) Entries(name string) ([]Entry, bool) {
	area, rest, _ := strings.Cut(name, "/")
	entries, ok := l[area][rest]
	return entries, ok
}

// Put sets the transcript of a case.
func (l Library) Put(name string, entries []Entry) {
	area, rest, _ := strings.Cut(name, "/")
	if l[area] == nil {
		l[area] = map[string][]Entry{}
	}
	l[area][rest] = entries
}

// Add returns the areas of more, each with the transcripts of l that more lacks.
func (l Library) Add(more Library) Library {
	out := Library{}
	for area, transcripts := range more {
		out[area] = map[string][]Entry{}
		maps.Copy(out[area], l[area])
		maps.Copy(out[area], transcripts)
	}
	return out
}

// parseArea parses one file.
func parseArea(text string) (map[string][]Entry, error) {
	out := map[string][]Entry{}
	for i, part := range strings.Split("\n"+text, "\n-- ") {
		name, body, ok := strings.Cut(part, " --\n")
		if i == 0 {
			continue
		}
		var entries []Entry
		if err := yaml.Unmarshal([]byte(body+"\n"), &entries); !ok || err != nil {
			return nil, fmt.Errorf("read the transcript %.40q: %w", name, err)
		}
		out[name] = entries
	}
	return out, nil
}

// yaml returns e as an item of a list, the request first.
func (e Entry) yaml() string {
	var out strings.Builder
	for _, part := range []Entry{{Do: e.Do}, {Status: e.Status}, {Headers: e.Headers}, {Body: e.Body}, {Frames: e.Frames}} {
		text, err := yaml.Marshal(part)
		if err != nil {
			text = []byte("# " + err.Error() + "\n")
		}
		if text := string(text); text != "{}\n" {
			out.WriteString(text)
		}
	}
	return "- " + strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "\n  ") + "\n"
}
