// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An Upgrade moves a module to another version of Flyball.
type Upgrade struct {
	// Dir is a directory of the module.
	Dir string
	// To is the version to require, or a query such as latest. Empty: Own.
	To string
	// From is the version whose types the code was written for. Empty: the one that go.mod
	// requires.
	From string
	// Own is the version of this program. Empty: not known.
	Own string
	// DryRun prints a diff, and writes nothing.
	DryRun bool
	// AllowDirty changes files that have uncommitted changes.
	AllowDirty bool
	// Table has the changes. Nil: those of this program.
	Table []Section
}

// Run makes the upgrade and prints what it concerns. An error after which files are written
// says so.
func (u Upgrade) Run(out io.Writer) (err error) {
	if u.Table == nil {
		if u.Table, err = Table(); err != nil {
			return err
		}
	}
	m, err := open(u.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	to, err := u.target(m)
	if err != nil {
		return err
	}
	from := m.version
	if u.From != "" {
		if from, err = m.resolve(u.From); err != nil {
			return fmt.Errorf("find version %s: %w", u.From, err)
		}
	}
	switch c := compare(from, to); {
	case c == 0:
		fmt.Fprintf(out, "%s is what the module requires; there is nothing to do\n", to)
		return nil
	case c > 0:
		return fmt.Errorf("the module requires %s, which is later than %s; nothing is changed", from, to)
	}
	r := &report{out: out, dir: m.dir, asBefore: u.DryRun}
	problems, err := u.steps(m, r, from, to)
	if err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	return u.finish(m, r, problems, to)
}

// target returns the version to require.
func (u Upgrade) target(m *module) (string, error) {
	query := u.To
	if query == "" {
		query = u.Own
	}
	if query == "" {
		return "", errors.New("this program was built from a clone, which has no version to require; give one with --to")
	}
	to, err := m.resolve(query)
	if err != nil {
		return "", fmt.Errorf("find version %s: %w", query, err)
	}
	if u.Own != "" && compare(to, u.Own) > 0 {
		return "", fmt.Errorf("this program is %s and knows no later changes: run go run %s/cmd/flyball@%s upgrade", u.Own, rootModule, to)
	}
	return to, nil
}

// sections returns those between two versions, the oldest first. What is not released comes
// with a version after all others.
func (u Upgrade) sections(from, to string) []Section {
	newest := ""
	for _, s := range u.Table {
		if compare(s.Version, newest) > 0 {
			newest = s.Version
		}
	}
	var found []Section
	for _, s := range u.Table {
		switch {
		case s.Version == "":
			if compare(to, newest) > 0 {
				s.Version = to
				found = append(found, s)
			}
		case compare(from, s.Version) < 0 && compare(s.Version, to) <= 0:
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Section) int { return compare(a.Version, b.Version) })
	return found
}

// steps makes the edits of one section after another, each with the types of the version
// before it, and stops where the result does not compile. It returns what does not.
func (u Upgrade) steps(m *module, r *report, from, to string) (problems []problem, err error) {
	if err := m.move(from); err != nil {
		return nil, err
	}
	p, err := m.load()
	if err != nil {
		return nil, err
	}
	if len(p.problems) > 0 {
		return nil, notCompiling(m, p, from)
	}
	r.unchecked(p.unchecked)
	sections := u.sections(from, to)
	for i, s := range sections {
		found, changed, err := p.apply(s)
		if err != nil {
			return nil, err
		}
		r.add(s, found)
		for name, text := range changed {
			r.moveLines(name, p.files[name].text, text)
		}
		touched := slices.ContainsFunc(found, func(f finding) bool { return f.line.isEdit() })
		maps.Copy(m.changed, changed)
		next := s.Version
		if !slices.ContainsFunc(sections[i+1:], func(s Section) bool { return s.hasEdits() }) {
			next = to
		}
		if !touched || next == to {
			continue
		}
		if err := m.move(next); err != nil {
			return nil, err
		}
		if p, err = m.load(); err != nil {
			return nil, err
		}
		if len(p.problems) > 0 {
			return p.problems, m.tidy()
		}
	}
	if err := errors.Join(m.move(to), m.tidy()); err != nil {
		return nil, err
	}
	if p, err = m.load(); err != nil {
		return nil, err
	}
	return p.problems, nil
}

func (s Section) hasEdits() bool {
	return slices.ContainsFunc(s.Changes, func(c Change) bool { return slices.ContainsFunc(c.Lines, Line.isEdit) })
}

func notCompiling(m *module, p *program, from string) error {
	text := "the module does not compile with " + from + ", so that uses cannot be found by their types; if go.mod was changed first, give the version before with --from"
	for i, problem := range p.problems {
		if i == maxProblems {
			text += fmt.Sprintf("\n  and %d more", len(p.problems)-i)
			break
		}
		text += "\n  " + problem.in(m.dir)
	}
	if strings.Contains(text, "export data") {
		text += "\nthis program was built by " + runtime.Version() + "; build it by the Go that go version shows here"
	}
	return errors.New(text)
}

// finish writes the module, or prints what would be written.
func (u Upgrade) finish(m *module, r *report, problems []problem, to string) error {
	files, err := m.results()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	if dirty := m.uncommitted(names); len(dirty) > 0 && !u.AllowDirty && !u.DryRun {
		return fmt.Errorf("%s would change, and has changes that are not committed: commit them, or give --allow-dirty; nothing is changed", strings.Join(dirty, ", "))
	}
	if u.DryRun {
		r.print()
		for _, name := range names {
			if filepath.Base(name) == "go.sum" {
				continue
			}
			before, _ := readIfThere(name)
			relative, _ := filepath.Rel(m.dir, name)
			r.diff(filepath.ToSlash(relative), before, files[name])
		}
	} else if err := write(files); err != nil {
		return fmt.Errorf("write the module: %w; nothing is changed", err)
	}
	if !u.DryRun {
		r.print()
	}
	r.summary(m.version, u.DryRun)
	switch {
	case len(problems) > 0:
		r.problems(problems)
		text := "the module does not compile yet: make the edits above"
		if m.version != to {
			text += ", and run the command again to go on from " + m.version + " to " + to
		}
		return errors.New(text)
	case u.DryRun:
		return nil
	case m.hasVendor():
		if _, err := m.goCommand([]string{"GOFLAGS="}, "mod", "vendor"); err != nil {
			return fmt.Errorf("the module is written; update its directory vendor: %w", err)
		}
	}
	if _, err := m.goCommand([]string{"GOFLAGS="}, "vet", "./..."); err != nil {
		return fmt.Errorf("the module is written: %w", err)
	}
	return nil
}
