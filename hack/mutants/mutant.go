// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is a change that removes a promise's guard, and the tests that must
// notice it.
type mutant struct {
	file  string // in the directory of the mutants
	why   string
	in    string // the declaration to change
	old   string // what it contains
	new   string // its replacement
	tests *regexp.Regexp
	flags []string // additional arguments of go test
}

// verdict is the result of a test on a mutant.
type verdict struct {
	killed bool
	how    string
}

func (v verdict) String() string {
	if v.killed {
		return "killed: " + v.how
	}
	return "NOT KILLED: " + v.how
}

// readAll reads the mutants in dir whose file name, with or without extension, matches one
// of globs; all if there are no globs.
func readAll(dir string, globs []string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []mutant
	for _, path := range files {
		file := filepath.Base(path)
		wanted := len(globs) == 0
		for _, glob := range globs {
			match, err := filepath.Match(strings.TrimSuffix(glob, ending), strings.TrimSuffix(file, ending))
			if err != nil {
				return nil, fmt.Errorf("match %q: %w", glob, err)
			}
			wanted = wanted || match
		}
		if !wanted {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := read(string(text))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		m.file = file
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("find mutants in %s: none matches", dir)
	}
	return out, nil
}

const ending = ".mutant"

// read parses the header up to an empty line and the change that follows it.
func read(text string) (mutant, error) {
	var m mutant
	head, change, _ := strings.Cut(text, "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "why":
			m.why = value
		case "in":
			m.in = value
		case "test":
			pattern, flags, _ := strings.Cut(value, " ")
			tests, err := regexp.Compile("^(?:" + pattern + ")$")
			if err != nil {
				return mutant{}, err
			}
			m.tests, m.flags = tests, strings.Fields(flags)
		default:
			return mutant{}, fmt.Errorf("the header has no line %q; it has \"why: \", \"test: \" and \"in: \"", line)
		}
	}
	if m.why == "" || m.in == "" || m.tests == nil {
		return mutant{}, errors.New("the header needs three lines: \"why: …\", \"test: TestName\" and \"in: function\"")
	}
	var before, after []string
	for line := range strings.SplitSeq(change, "\n") {
		sign, rest := "", ""
		if line != "" {
			sign, rest = line[:1], strings.TrimPrefix(line[1:], " ")
		}
		switch sign {
		case "-":
			before = append(before, rest)
		case "+":
			after = append(after, rest)
		case " ", "":
			before, after = append(before, rest), append(after, rest)
		default:
			return mutant{}, fmt.Errorf("a line of the change begins with \"- \", \"+ \" or two spaces, not so %q", line)
		}
	}
	m.old, m.new = strings.TrimSpace(strings.Join(before, "\n")), strings.TrimSpace(strings.Join(after, "\n"))
	if m.old == "" {
		return mutant{}, errors.New("the change needs a line \"- …\" or a line that stays: where does it go?")
	}
	return m, nil
}

// command returns the go test command that runs m's tests.
func (m mutant) command(t *tree) ([]string, error) {
	dirs := t.holders(m.tests)
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no test is named %s", m.tests)
	}
	args, module := []string{"test"}, t.outside(dirs[0])
	if module != "" {
		args = append(args, inModule+module)
	}
	for i, dir := range dirs {
		if t.outside(dir) != module {
			return nil, fmt.Errorf("tests named %s are in several modules, of which the workspace does not have all", m.tests)
		}
		if module != "" {
			dirs[i] = "." + strings.TrimPrefix(dir, module)
		}
	}
	args = append(args, "-count=1", "-run="+m.tests.String())
	return append(append(args, dirs...), m.flags...), nil
}

// inModule begins the argument that names the directory of a module outside of the workspace.
const inModule = "-C="

// outside returns the directory of the module of dir if it is outside of the workspace; else
// nothing.
func (t *tree) outside(dir string) string {
	for at := path.Clean(dir); at != "."; at = path.Dir(at) {
		if _, err := os.Stat(filepath.Join(t.root, at, "go.mod")); err != nil {
			continue
		}
		work, _ := os.ReadFile(filepath.Join(t.root, "go.work"))
		if slices.Contains(strings.Fields(string(work)), "./"+at) {
			return ""
		}
		return "./" + at
	}
	return ""
}

// compile builds the changed package, with the change in dir laid over the tree.
func (m mutant) compile(ctx context.Context, t *tree, dir string) error {
	change, err := t.place(m)
	if err != nil {
		return err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(t.root, change.path): changed}})
	if err == nil {
		err = errors.Join(os.WriteFile(changed, change.to, 0o644), os.WriteFile(overlay, text, 0o644))
	}
	if err != nil {
		return err
	}
	args, at := []string{"build"}, "./"+path.Dir(change.path)
	if module := t.outside(path.Dir(change.path)); module != "" {
		args, at = append(args, inModule+module), "."+strings.TrimPrefix(at, module)
	}
	if out, err := command(ctx, t.root, "go", append(args, "-o", os.DevNull, "-overlay", overlay, at)...); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return ctx.Err()
}

// try applies the mutant to the tree, runs its tests and reverts it.
func (m mutant) try(ctx context.Context, t *tree, limit time.Duration) (verdict, error) {
	change, err := t.place(m)
	if err != nil {
		return verdict{how: err.Error()}, nil
	}
	args, err := m.command(t)
	if err != nil {
		return verdict{how: err.Error()}, nil
	}
	path := filepath.Join(t.root, change.path)
	if err := os.WriteFile(path, change.to, 0o644); err != nil {
		return verdict{}, err
	}
	text, failed := test(ctx, t.root, limit, args)
	if err := os.WriteFile(path, change.from, 0o644); err != nil {
		return verdict{}, fmt.Errorf("take it back: %w", err)
	}
	return verdictOf(text, failed), ctx.Err()
}

var (
	noBuild  = regexp.MustCompile(`(?m)^FAIL\t.*\[(build|setup) failed\]`)
	fellOver = regexp.MustCompile(`(?m)^panic: test timed out.*|^panic: .*|^fatal error: .*`)
	testFail = regexp.MustCompile(`(?m)^\s*--- FAIL: \S+`)
	pkgFail  = regexp.MustCompile(`(?m)^FAIL\t`)
)

// verdictOf returns what the output of a test means for the mutant.
func verdictOf(text string, failed error) verdict {
	switch {
	case failed == nil:
		return verdict{how: "the test passes"}
	case noBuild.MatchString(text):
		return verdict{how: "does not compile: " + firstLine(noBuild.FindString(text))}
	case testFail.MatchString(text):
		return verdict{true, strings.TrimPrefix(strings.TrimSpace(testFail.FindString(text)), "--- ")}
	case pkgFail.MatchString(text) && fellOver.MatchString(text):
		return verdict{true, fellOver.FindString(text)}
	}
	return verdict{how: "the go command failed otherwise: " + failed.Error()}
}

// test runs a go test command, with a limit unless it has its own.
func test(ctx context.Context, dir string, limit time.Duration, args []string) (string, error) {
	args = slices.Clone(args)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-timeout") }) {
		args = append(args, "-timeout="+limit.String())
	}
	args = append(args, "-vet=off", "-ldflags=-s -w") // each mutant is linked separately
	ctx, cancel := context.WithTimeout(ctx, 5*limit)  // compiling counts too
	defer cancel()
	return command(ctx, dir, "go", args...)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
