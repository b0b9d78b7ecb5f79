// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of fields: a tree of their JSON names. A Set from Parse contains
// what is always kept. The nil Set contains everything; the zero Set nothing.
type Set struct {
	below map[string]*Set // a nil Set: the field with all below it
}

// always are the fields that every Set from Parse contains.
var always = [...]string{
	"apiVersion", "kind",
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "metadata.generation",
	"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds",
	"metadata.finalizers", "metadata.ownerReferences", "metadata.labels",
}

// Always returns the paths of the fields that every Set from Parse contains.
func Always() []string { return slices.Clone(always[:]) }

// Parse returns the set of the fields at paths and of those that are always
// kept. Without paths it returns these alone. In a path a backslash before a
// dot, a comma or a backslash makes it part of a name. An error names the path
// and the fix.
func Parse(paths ...string) (*Set, error) {
	s := new(Set)
	for _, path := range slices.Concat(always[:], paths) {
		names, err := split(path)
		if err != nil {
			return nil, err
		}
		s.add(names)
	}
	return s, nil
}

// add is for the construction of s alone.
func (s *Set) add(names []string) {
	sub, known := s.below[names[0]]
	switch {
	case known && sub == nil:
		return
	case !known:
		sub = new(Set)
	}
	if s.below == nil {
		s.below = make(map[string]*Set)
	}
	if len(names) == 1 {
		s.below[names[0]] = nil
		return
	}
	sub.add(names[1:])
	s.below[names[0]] = sub
}

// split returns the names in a path.
func split(path string) ([]string, error) {
	switch {
	case path == "":
		return nil, errors.New("a field path is empty; name a field, such as \"spec.nodeName\", or give no paths to keep all fields")
	case strings.HasPrefix(path, ".") || strings.HasPrefix(path, "$") || strings.ContainsAny(path, "[]*{}"):
		return nil, fmt.Errorf("field path %q: give JSON names separated by dots, such as \"spec.containers.image\"; a path goes through lists without an index", path)
	}
	var names []string
	var name strings.Builder
	escaped := false
	for _, r := range path + "." {
		switch {
		case escaped || r != '\\' && r != '.':
			name.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case name.Len() == 0:
			return nil, fmt.Errorf("field path %q: a name between the dots is empty; write a single dot between two names", path)
		default:
			names = append(names, name.String())
			name.Reset()
		}
	}
	if name.Len() > 0 || escaped {
		return nil, fmt.Errorf("field path %q: it ends in a backslash; a backslash stands before the dot that is part of a name", path)
	}
	return names, nil
}

var escape = strings.NewReplacer(".", "\\.", ",", "\\,", "\\", "\\\\")

// Child reports whether the field with that name is kept, at least in part. sub
// is what is kept below it; nil: everything. The Child of a list's field holds
// for each of the elements.
func (s *Set) Child(name string) (sub *Set, keep bool) {
	if s == nil {
		return nil, true
	}
	sub, keep = s.below[name]
	return sub, keep
}

// Names returns the sorted names that s has a Child for. It is nil if s is.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.below))
}

// Union returns the set of the fields that a or b contains. It shares memory
// with them.
func Union(a, b *Set) *Set {
	switch {
	case a == nil || b == nil:
		return nil
	case a.Contains(b):
		return a
	case b.Contains(a):
		return b
	}
	out := &Set{below: maps.Clone(a.below)}
	for name, sub := range b.below {
		if own, both := a.below[name]; both {
			sub = Union(own, sub)
		}
		out.below[name] = sub
	}
	return out
}

// Contains reports whether s contains all fields of o.
func (s *Set) Contains(o *Set) bool {
	switch {
	case s == nil || s == o:
		return true
	case o == nil:
		return false
	}
	for name, sub := range o.below {
		if own, ok := s.below[name]; !ok || !own.Contains(sub) {
			return false
		}
	}
	return true
}

// Paths returns the sorted paths of s, without those that are always kept and
// without those below another. It is nil if s is. Parse of the Paths of a set
// from Parse returns an equal set.
func (s *Set) Paths() []string {
	if s == nil {
		return nil
	}
	paths := s.appendPaths(make([]string, 0, len(s.below)), "")
	paths = slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(always[:], path) })
	slices.Sort(paths)
	return paths
}

func (s *Set) appendPaths(paths []string, prefix string) []string {
	for name, sub := range s.below {
		path := prefix + escape.Replace(name)
		if sub == nil {
			paths = append(paths, path)
			continue
		}
		paths = sub.appendPaths(paths, path+".")
	}
	return paths
}

// String returns the Paths separated by commas, or "*" for everything. It is
// equal for equal sets from Parse. See Identity for others.
func (s *Set) String() string {
	if s == nil {
		return "*"
	}
	return strings.Join(s.Paths(), ",")
}

// Identity returns a text that is equal for equal sets alone, also for those that
// Child returns.
func (s *Set) Identity() string {
	if s == nil {
		return "*"
	}
	var out strings.Builder
	out.WriteByte('{')
	for _, name := range s.Names() {
		out.WriteString(strconv.Quote(name))
		out.WriteString(s.below[name].Identity())
	}
	out.WriteByte('}')
	return out.String()
}
