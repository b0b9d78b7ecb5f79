// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A report prints what the upgrade concerns.
type report struct {
	out           io.Writer
	dir           string
	asBefore      bool // lines are those of the files before
	parts         []part
	edited, hands int
}

// A part is an entry that concerns the module, with the places.
type part struct {
	version, entry string
	found          []finding
}

const maxProblems = 20

func (r *report) unchecked(names []string) {
	for _, name := range names {
		fmt.Fprintf(r.out, "%s: not looked at: its build constraint holds nowhere\n", problem{}.file(r.dir, name))
	}
}

// add takes the places that a section concerns.
func (r *report) add(s Section, found []finding) {
	for i, change := range s.Changes {
		var here []finding
		for _, f := range found {
			if f.change == i {
				here = append(here, f)
			}
		}
		slices.SortStableFunc(here, func(a, b finding) int {
			return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Offset, b.at.Offset))
		})
		if len(here) > 0 {
			r.parts = append(r.parts, part{s.Version, change.Entry, here})
		}
	}
}

// moveLines changes the lines of places in a file to those after its edits.
func (r *report) moveLines(name string, before, after []byte) {
	if r.asBefore {
		return
	}
	var now []int // by the line before, less one
	line, removed := 1, 0
	for _, l := range diff(lines(before), lines(after)) {
		switch l.sign {
		case '-': // the lines that replace it follow
			now = append(now, line)
			removed++
		case '+':
			if at := len(now) - removed; removed > 0 {
				for i := at; i < len(now); i++ {
					now[i] = line
				}
				removed--
			}
			line++
		default:
			now = append(now, line)
			line, removed = line+1, 0
		}
	}
	for _, p := range r.parts {
		for i, f := range p.found {
			if f.at.Filename == name && f.at.Line <= len(now) {
				p.found[i].at.Line = now[f.at.Line-1]
			}
		}
	}
}

func (r *report) print() {
	for _, p := range r.parts {
		fmt.Fprintf(r.out, "%s  %s\n", p.version, wrap(p.entry, 100, "    "))
		r.places(p.found)
	}
}

// places prints each edit and each place to edit, and of notes the first.
func (r *report) places(found []finding) {
	var notes []finding
	for _, f := range found {
		at := problem{at: f.at}.where(r.dir)
		switch {
		case f.by != "":
			r.edited++
			fmt.Fprintf(r.out, "  %s: %s -> %s\n", at, f.what, f.by)
		case f.line.isEdit():
			r.hands++
			fmt.Fprintf(r.out, "  %s: %s: edit it by hand\n", at, f.what)
		default:
			notes = append(notes, f)
		}
	}
	if len(notes) > 0 {
		first := notes[0]
		fmt.Fprintf(r.out, "  %s: %s is used", problem{at: first.at}.where(r.dir), first.what)
		if more := len(notes) - 1; more > 0 {
			fmt.Fprintf(r.out, ", and in other places: %d", more)
		}
		fmt.Fprintln(r.out)
	}
}

func (r *report) summary(version string, dry bool) {
	verb := "requires"
	if dry {
		verb = "would require"
	}
	fmt.Fprintf(r.out, "the module %s %s; edits made: %d, to make by hand: %d\n", verb, version, r.edited, r.hands)
}

func (r *report) problems(all []problem) {
	for i, p := range all {
		if i == maxProblems {
			fmt.Fprintf(r.out, "  and %d more\n", len(all)-i)
			return
		}
		fmt.Fprintf(r.out, "  %s\n", p.in(r.dir))
	}
}

func (p problem) in(dir string) string { return p.where(dir) + ": " + p.text }

// where returns file:line below a directory.
func (p problem) where(dir string) string {
	name := p.file(dir, p.at.Filename)
	if p.at.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, p.at.Line)
}

func (problem) file(dir, name string) string {
	if relative, err := filepath.Rel(dir, name); err == nil {
		name = relative
	}
	return filepath.ToSlash(name)
}

// wrap breaks text into lines.
func wrap(text string, width int, indent string) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			out.WriteString("\n" + indent)
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}

// diff prints the lines that change, in the unified format.
func (r *report) diff(name string, before, after []byte) {
	fmt.Fprintf(r.out, "--- a/%[1]s\n+++ b/%[1]s\n%[2]s", name, unified(lines(before), lines(after)))
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))), "\n"), "\n")
}
