// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command licenses checks the licences of what modules are built and tested with.
//
//	go run . DIR...      fails if a licence is not in the list of allowed ones, or not known
//	go run . -list DIR   also prints each module with its licences
//
// The licence of a package is in the files of its directory, or of the closest one above it
// in its module, whose texts are those of a licence. No network is needed beyond what the go
// command downloads.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/flyball-dev/flyball/internal/commandline"
)

// allowed are the licences under which an operator can be distributed in binary form by
// adding their texts.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// exceptions are modules with other licences, each with the reason.
var exceptions = map[string]map[string]string{
	"github.com/cyphar/filepath-securejoin": {"MPL-2.0": "a guest's tests alone use it; its files stay under it, whatever they are linked with"},
	"github.com/opencontainers/go-digest":   {"CC-BY-SA-4.0": "the licence of its documentation; the code is under Apache-2.0"},
}

// covered is how many per cent of a file must be a known licence.
const covered = 75

var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicen[cs]e)([-._].*)?$`)

func main() {
	commandline.Exit("licenses", run(os.Args[1:], os.Stdout))
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	list := flags.Bool("list", false, "print each module with its licences")
	all := flags.Bool("all", false, "the directories are all there are: report exceptions that none of them needs")
	if err := commandline.Flags(flags, args); err != nil {
		return err
	}
	found := map[string]*linked{}
	for _, dir := range flags.Args() {
		if err := add(found, dir); err != nil {
			return fmt.Errorf("list the packages of %s: %w", dir, err)
		}
	}
	if len(found) == 0 {
		return errors.New("there is nothing to check; give directories of modules")
	}
	counts := map[string]int{}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(found)) {
		m := found[key]
		texts := slices.Sorted(maps.Keys(m.licences))
		if *list {
			fmt.Fprintf(out, "%s %s\n", key, strings.Join(texts, ", "))
		}
		for _, l := range texts {
			counts[l]++
			if !slices.Contains(allowed, l) && exceptions[m.path][l] == "" {
				problems = append(problems, fmt.Errorf("%s is licensed under %s (%s), needed by %s", key, l, m.licences[l], m.by))
			}
		}
		problems = append(problems, m.problems...)
	}
	for path, of := range exceptions {
		for l := range of {
			if used := slices.ContainsFunc(slices.Collect(maps.Values(found)), func(m *linked) bool { return m.path == path && m.licences[l] != "" }); *all && !used {
				problems = append(problems, fmt.Errorf("%s is not used under %s: remove the exception", path, l))
			}
		}
	}
	for _, l := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%4d modules under %s\n", counts[l], l)
	}
	return errors.Join(problems...)
}

// linked is a module that another is built or tested with.
type linked struct {
	path, by string
	licences map[string]string // the file of each
	problems []error
	looked   map[string]bool
}

// add adds what the packages of a module and their tests need.
func add(found map[string]*linked, dir string) error {
	cmd := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "list", "-deps", "-test", "-json=ImportPath,Dir,Standard,Module", "./...", "tool")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Dir string
			Module          *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Version string }
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := p.Module
		if m == nil || m.Main || m.Replace != nil && m.Replace.Version == "" { // ours, or the standard library
			continue
		}
		key := m.Path + "@" + m.Version
		if found[key] == nil {
			found[key] = &linked{path: m.Path, by: dir, licences: map[string]string{}, looked: map[string]bool{}}
		}
		found[key].look(p.Dir, m.Dir)
	}
}

// look finds the licences of a package's directory.
func (l *linked) look(dir, top string) {
	for at := dir; !l.looked[at]; at = filepath.Dir(at) {
		l.looked[at] = true
		entries, err := os.ReadDir(at)
		if err != nil {
			l.problems = append(l.problems, err)
			return
		}
		isLicensed := false
		for _, e := range entries {
			if !named.MatchString(e.Name()) || e.IsDir() || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			isLicensed = true
			l.read(filepath.Join(at, e.Name()))
		}
		switch {
		case isLicensed:
			return
		case at == top || len(at) <= len(top):
			l.problems = append(l.problems, fmt.Errorf("%s has no licence above its package %s, needed by %s", l.path, dir, l.by))
			return
		}
	}
}

// read takes the licences of a file.
func (l *linked) read(name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		l.problems = append(l.problems, err)
		return
	}
	coverage := licensecheck.Scan(text)
	if coverage.Percent < covered {
		l.problems = append(l.problems, fmt.Errorf("%s: %.0f%% of the text are of a known licence, want %d%%: read it, and decide", name, coverage.Percent, covered))
	}
	for _, match := range coverage.Match {
		l.licences[match.ID] = name
	}
}
