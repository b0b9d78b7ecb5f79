// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package upgrade moves a module to a later version of Flyball: it finds what the
// changelog's breaking changes concern by types, makes the edits that are mechanical, and
// lists the others.
//
//	changes.txt ─► section of a version ─► uses in the module ─► edits ─► types of the next version
//
// Everything is computed in a copy of go.mod and an overlay of the changed files. The module
// is written when its state is known.
package upgrade

import (
	_ "embed"
	"fmt"
	"strings"
)

// A Section has the changes of a version, in the changelog's order.
type Section struct {
	Version string // with its v; empty: not released yet
	Changes []Change
}

// A Change is an entry of the changelog with what it means for code.
type Change struct {
	Entry string // in one line
	Lines []Line
}

// A Line says what happens to uses of something.
type Line struct {
	Verb Verb
	// Old is what the line is about. For Rewrite it is empty.
	Old Name
	// New is the new last element for Rename, and the new name for Move.
	New string
	// Rewrite has the two forms of a call.
	Rewrite *Rewrite
}

// Verb is what a line does.
type Verb string

// The verbs of changes.txt. Names of packages are below Flyball's module.
const (
	// Rename gives a name another last element: rename informer.EventAdded Added.
	Rename Verb = "rename"
	// Move is for a name in another package: move informer.Item informer/listwatch.Item.
	Move Verb = "move"
	// Rewriting changes the form of an expression or of statements, after the packages that
	// it names: rewrite source: source.Kind(x, source.Owner(o), ps) -> source.Owned(x, o, ps).
	Rewriting Verb = "rewrite"
	// Use is for a name whose uses people edit: use informer.Lister.Index.
	Use Verb = "use"
	// Note is for another behaviour of a package or name: note client, note client.Client.Create.
	Note Verb = "note"
	// None is for an entry that no module can use, with its reason.
	None Verb = "none"
)

// isEdit reports whether code must change for a line.
func (l Line) isEdit() bool { return l.Verb != Note && l.Verb != None }

// A Name is a package of Flyball, or something that it declares.
type Name struct {
	Package string   // below the module: informer/listwatch
	Path    []string // Item, Heap; empty: the package
}

func (n Name) String() string {
	short := n.Package[strings.LastIndex(n.Package, "/")+1:]
	return strings.Join(append([]string{short}, n.Path...), ".")
}

func parseName(text string) Name {
	slash := strings.LastIndex(text, "/") + 1
	first, path, found := strings.Cut(text[slash:], ".")
	n := Name{Package: text[:slash] + first}
	if found {
		n.Path = strings.Split(path, ".")
	}
	return n
}

//go:embed changes.txt
var changes string

// Table returns the changes that this program knows, the newest version first.
func Table() ([]Section, error) { return ParseTable(changes) }

// ParseTable parses a text as in changes.txt: headings and entries as in the changelog, and
// after each entry its lines, which begin with a tab.
func ParseTable(text string) ([]Section, error) {
	var sections []Section
	for i, line := range strings.Split(text, "\n") {
		problem := func(what string) error { return fmt.Errorf("changes.txt:%d: %s: %s", i+1, what, line) }
		heading, isHeading := strings.CutPrefix(line, "## ")
		var last *Section
		if len(sections) > 0 {
			last = &sections[len(sections)-1]
		}
		switch {
		case isHeading:
			sections = append(sections, Section{Version: versionOf(heading)})
		case strings.TrimSpace(line) == "" || last == nil:
		case strings.HasPrefix(line, "- "):
			last.Changes = append(last.Changes, Change{Entry: line[2:]})
		case len(last.Changes) == 0:
			return nil, problem("no entry begins before it")
		case strings.HasPrefix(line, "  "):
			last.Changes[len(last.Changes)-1].Entry += " " + strings.TrimSpace(line)
		case strings.HasPrefix(line, "\t"):
			parsed, err := parseLine(strings.TrimSpace(line))
			if err != nil {
				return nil, problem(err.Error())
			}
			change := &last.Changes[len(last.Changes)-1]
			change.Lines = append(change.Lines, parsed...)
		default:
			return nil, problem("it is no heading, entry or line")
		}
	}
	return sections, nil
}

// versionOf returns the version of a heading: [0.2.0] - 2030-01-02.
func versionOf(heading string) string {
	_, version, found := strings.Cut(heading, "[")
	version, _, _ = strings.Cut(version, "]")
	if !found {
		return ""
	}
	return "v" + version
}

func parseLine(text string) ([]Line, error) {
	verb, rest, _ := strings.Cut(text, " ")
	args := strings.Fields(rest)
	var lines []Line
	switch v := Verb(verb); v {
	case Rename, Move:
		if len(args) != 2 {
			return nil, fmt.Errorf("%s takes two names", verb)
		}
		lines = append(lines, Line{Verb: v, Old: parseName(args[0]), New: args[1]})
	case Use, Note:
		for _, arg := range args {
			lines = append(lines, Line{Verb: v, Old: parseName(arg)})
		}
	case Rewriting:
		rewrite, err := parseRewrite(rest)
		if err != nil {
			return nil, err
		}
		lines = append(lines, Line{Verb: v, Rewrite: rewrite})
	case None:
		lines = append(lines, Line{Verb: v})
	default:
		return nil, fmt.Errorf("there is no verb %q", verb)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("%s takes arguments", verb)
	}
	return lines, nil
}
