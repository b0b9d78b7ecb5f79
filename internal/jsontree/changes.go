// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree

import (
	"maps"
	"slices"
	"strings"
)

// Change is a difference between two trees.
type Change struct {
	// Path is the JSON pointer to the value.
	Path string `json:"path"`
	// Was and Is are the values in the first and the second tree. Nil means that there is none.
	Was any `json:"was,omitempty"`
	Is  any `json:"is,omitempty"`
}

// Diff returns the changes from was to is, in the order of their paths. Lists are compared as a
// whole, and a null in an object counts as absent. The changes share values with the trees.
func Diff(was, is map[string]any) []Change { return diff(nil, "", was, is) }

func diff(found []Change, path string, was, is map[string]any) []Change {
	names := map[string]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := path + Pointer(name)
		a, isA := was[name].(map[string]any)
		b, isB := is[name].(map[string]any)
		switch {
		case isA && isB:
			found = diff(found, at, a, b)
		case !Equal(was[name], is[name]):
			found = append(found, Change{at, was[name], is[name]})
		}
	}
	return found
}

// Apply makes the changes in now whose place there has the value that it had, and skips the
// others. It reports how many it has made.
func Apply(now map[string]any, changes []Change) (made int) {
	for _, c := range changes {
		if apply(now, c) {
			made++
		}
	}
	return made
}

func apply(now map[string]any, c Change) bool {
	path := c.Names()
	if len(path) == 0 {
		return false
	}
	last := len(path) - 1
	for _, name := range path[:last] {
		inner, ok := now[name].(map[string]any)
		if !ok {
			return false
		}
		now = inner
	}
	if !Equal(now[path[last]], c.Was) {
		return false
	}
	if c.Is == nil {
		delete(now, path[last])
	} else {
		now[path[last]] = c.Is
	}
	return true
}

// Names returns the names of a path's fields. Empty means that the path is not a JSON pointer
// to a field.
func (c Change) Names() []string {
	rest, ok := strings.CutPrefix(c.Path, "/")
	if !ok {
		return nil
	}
	names := strings.Split(rest, "/")
	for i, name := range names {
		names[i] = unescape.Replace(name)
	}
	return names
}

// Field returns the path as it is written in Go and in messages: spec.tls.
func (c Change) Field() string { return strings.Join(c.Names(), ".") }
