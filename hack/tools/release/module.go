// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// rootModule is the module at the top of the repository.
const rootModule = "github.com/flyball-dev/flyball"

// published is a module that users get.
type published struct {
	path string
	dir  string // in the repository; "": the root
	file *modfile.File
}

// tag returns the tag of a version of m.
func (m published) tag(version string) string { return path.Join(m.dir, version) }

// isPublished reports whether the module in a directory of the repository is for users
// to require. Examples are copied, and what is under hack is for this repository.
func isPublished(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return first != "examples" && first != "hack" && !slices.Contains(strings.Split(dir, "/"), "testdata")
}

// modules returns the published ones of the files go.mod below top, each after those that
// it requires.
func modules(top string, files []string) ([]published, error) {
	byPath := make(map[string]published)
	var paths []string
	for _, name := range files {
		dir := path.Dir(name)
		if dir == "." {
			dir = ""
		}
		if !isPublished(dir) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		f, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		if want := path.Join(rootModule, dir); f.Module.Mod.Path != want {
			return nil, fmt.Errorf("%s: the module is %s, want %s, under which its tag would be found", name, f.Module.Mod.Path, want)
		}
		byPath[f.Module.Mod.Path] = published{path: f.Module.Mod.Path, dir: dir, file: f}
		paths = append(paths, f.Module.Mod.Path)
	}
	slices.Sort(paths)
	var ordered []published
	state := make(map[string]int) // 1: its requirements are being added; 2: added
	var add func(string) error
	add = func(p string) error {
		m, ours := byPath[p]
		switch {
		case !ours || state[p] == 2:
			return nil
		case state[p] == 1:
			return fmt.Errorf("%s requires itself through other modules, so no go.sum can have the hashes of all of them", p)
		}
		state[p] = 1
		for _, r := range m.file.Require {
			if err := add(r.Mod.Path); err != nil {
				return err
			}
		}
		state[p] = 2
		ordered = append(ordered, m)
		return nil
	}
	for _, p := range paths {
		if err := add(p); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// freed returns the go.mod of m that requires the release of others, without replacing
// anything by a directory.
func (m published) freed(version string, others map[string]sums) ([]byte, error) {
	for _, r := range m.file.Require {
		if _, ok := others[r.Mod.Path]; !ok {
			continue
		}
		if err := m.file.AddRequire(r.Mod.Path, version); err != nil {
			return nil, err
		}
	}
	for _, r := range slices.Clone(m.file.Replace) {
		if _, ok := others[r.Old.Path]; !ok {
			return nil, fmt.Errorf("it replaces %s, which users of the module would not", r.Old.Path)
		}
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	m.file.Cleanup()
	return m.file.Format()
}

// sums are the hashes of a module that a go.sum has.
type sums struct{ zip, file string }

// summed returns a go.sum with the hashes of required modules at version.
func summed(old string, version string, required map[string]sums) string {
	var lines []string
	for line := range strings.Lines(old) {
		if fields := strings.Fields(line); len(fields) != 3 || required[fields[0]] != (sums{}) {
			continue
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	for p, s := range required {
		lines = append(lines, fmt.Sprintf("%s %s %s", p, version, s.zip), fmt.Sprintf("%s %s/go.mod %s", p, version, s.file))
	}
	slices.SortFunc(lines, func(a, b string) int {
		x, y := strings.Fields(a), strings.Fields(b)
		list := []module.Version{{Path: y[0], Version: y[1]}, {Path: x[0], Version: x[1]}}
		module.Sort(list)
		switch {
		case a == b:
			return 0
		case list[0].Path == x[0] && list[0].Version == x[1]:
			return -1
		}
		return 1
	})
	return strings.Join(lines, "\n") + "\n"
}
