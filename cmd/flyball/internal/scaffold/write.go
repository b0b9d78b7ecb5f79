// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Written is what Write has written.
type Written struct {
	// Dir has the module.
	Dir string
	// Files by their paths in Dir, sorted.
	Files []string
	// Group of the kind.
	Group string
}

// Write checks the project and writes its module into a new or empty directory. If anything
// is wrong, it writes nothing and returns all that is.
func (p Project) Write() (Written, error) {
	if p.Replace != "" {
		absolute, err := cloneIn(p.Replace)
		if err != nil {
			return Written{}, err
		}
		p.Replace = absolute
	}
	plan, err := p.check()
	if p.Version == "" && p.Replace == "" {
		err = errors.Join(err, errors.New("this program was built from a clone of Flyball, which has no version to require; in the clone add --replace . and a --dir outside of it, or where there is a release run go run "+flyballModule+"/cmd/flyball@latest"))
	}
	if dirErr := checkDir(plan.Dir); plan.Dir != "" {
		err = errors.Join(err, dirErr)
	}
	if err != nil {
		return Written{}, err
	}
	all, err := plan.files()
	if err != nil {
		return Written{}, err
	}
	out := Written{Dir: plan.Dir, Files: slices.Sorted(maps.Keys(all)), Group: plan.Group}
	return out, all.write(plan.Dir)
}

// checkDir returns an error unless dir is empty or can be made.
func checkDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("directory %s cannot be read: %w; give another with --dir", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("directory %s is not empty: it has %s; give another with --dir", dir, entries[0].Name())
	}
	return nil
}

// cloneIn returns the absolute path of a clone of Flyball.
func cloneIn(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(absolute, "simulate", "go.mod"))
	}
	if err != nil {
		return "", fmt.Errorf("--replace %s is not a clone of Flyball: %w", dir, err)
	}
	return filepath.ToSlash(absolute), nil
}

func (all files) write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, all[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
