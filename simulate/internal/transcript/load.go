// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Load parses all *.txt in the root of fsys, an area each, in the order of their names. The
// cases of shared.txt are not in the result: the step use plays them.
func Load(fsys fs.FS) ([]Case, error) {
	files, err := fs.Glob(fsys, "*.txt")
	if err != nil {
		return nil, err
	}
	var cases, known []Case
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		of, err := Parse(strings.TrimSuffix(path.Base(file), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		if file == "shared.txt" {
			known = of
			continue
		}
		cases = append(cases, of...)
	}
	return begin(cases, known)
}

// begin returns the cases with each use replaced by the steps of a known case. Duplicate
// names are an error.
func begin(cases, known []Case) ([]Case, error) {
	seen := map[string]bool{}
	for i, c := range cases {
		if seen[c.Name] {
			return nil, fmt.Errorf("two cases have the name %s", c.Name)
		}
		seen[c.Name] = true
		var err error
		if cases[i].Steps, err = begun(c, known); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// begun returns the steps of c with each use replaced.
func begun(c Case, known []Case) (steps []Step, err error) {
	for _, step := range c.Steps {
		if step.Verb != "use" {
			steps = append(steps, step)
			continue
		}
		at := slices.IndexFunc(known, func(k Case) bool { return k.Name == "shared/"+step.Rest })
		if at < 0 {
			return nil, fmt.Errorf("%s: line %d: no case shared/%s", c.Name, step.Line, step.Rest)
		}
		for _, s := range known[at].Steps {
			s.Options = append([]Option{{"silent", "true"}}, s.Options...)
			steps = append(steps, s)
		}
	}
	return steps, nil
}
