// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/editdistance"
)

// Resolve returns an error for a path that objects of t, a struct or a pointer
// to one, cannot have: the error names the path and the names that come near. A
// path cannot go below a map, or below a type that reads its JSON itself. For
// types without fields of their own, such as unstructured.Unstructured, every
// path is right.
func (s *Set) Resolve(t reflect.Type) error {
	if s == nil || isTree(t) {
		return nil
	}
	return s.resolve(t, t, "")
}

func (s *Set) resolve(root, t reflect.Type, prefix string) error {
	t = elementOf(t)
	if t.Kind() != reflect.Struct || isLeaf(t) {
		path, whole := prefix+s.first(), strings.TrimSuffix(prefix, ".")
		return fmt.Errorf("field path %q of %s: %s is kept as a whole or not at all; name it without what is below, as %q", path, nameOf(root), t, whole)
	}
	known := fieldsOf(t)
	for _, name := range s.Names() {
		sub := s.below[name]
		field, ok := known[name]
		path := prefix + escape.Replace(name)
		switch {
		case !ok && isAlways(path, sub):
		case !ok:
			if sub != nil {
				path += "." + sub.first()
			}
			return fmt.Errorf("field path %q of %s: %s has no field %q in JSON; %s", path, nameOf(root), t, name, near(name, known))
		case sub != nil:
			if err := sub.resolve(root, field, path+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// first returns a path of s for an error.
func (s *Set) first() string {
	return slices.Min(s.appendPaths(nil, ""))
}

// isAlways reports whether all fields of sub at path are always kept: a type
// need not have them.
func isAlways(path string, sub *Set) bool {
	if sub == nil {
		return slices.Contains(always[:], path)
	}
	return !slices.ContainsFunc(sub.appendPaths(nil, path+"."), func(path string) bool { return !slices.Contains(always[:], path) })
}

func nameOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}

// elementOf returns the type of the elements of pointers and lists.
func elementOf(t reflect.Type) reflect.Type {
	for !isLeaf(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	return t
}

type tree interface{ UnstructuredContent() map[string]any }

// isTree reports whether t holds decoded JSON in maps.
func isTree(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[tree]())
}

// isLeaf reports whether t reads its JSON itself, so that what is below its
// fields is not known.
func isLeaf(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldsOf returns the types of the fields of t by their JSON names. Fields of
// embedded structs belong to t unless t has one of the same name.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := make(map[string]reflect.Type)
	embedded := make(map[string]reflect.Type)
	for f := range fields(t) {
		if f.inline {
			maps.Copy(embedded, fieldsOf(elementOf(f.Type)))
			continue
		}
		out[f.name] = f.Type
	}
	for name, of := range embedded {
		if _, own := out[name]; !own {
			out[name] = of
		}
	}
	return out
}

// field is a field of a struct that JSON sees.
type field struct {
	reflect.StructField
	name   string
	inline bool // its fields are read as those of the struct
}

func fields(t reflect.Type) func(func(field) bool) {
	return func(yield func(field) bool) {
		for f := range t.Fields() {
			tag := f.Tag.Get("json")
			name, _, _ := strings.Cut(tag, ",")
			inline := f.Anonymous && name == "" && elementOf(f.Type).Kind() == reflect.Struct
			if tag == "-" || !f.IsExported() && !inline {
				continue
			}
			if name == "" {
				name = f.Name
			}
			if !yield(field{f, name, inline}) {
				return
			}
		}
	}
}

// near says which of the known names come near name, or all if they are few.
func near(name string, known map[string]reflect.Type) string {
	all := slices.Sorted(maps.Keys(known))
	close := slices.DeleteFunc(slices.Clone(all), func(other string) bool {
		return !strings.EqualFold(name, other) && editdistance.Of(strings.ToLower(name), strings.ToLower(other)) > max(1, len(name)/3)
	})
	switch {
	case len(close) > 0:
		return "did you mean " + strings.Join(close, " or ") + "?"
	case len(all) <= 12:
		return "it has " + strings.Join(all, ", ")
	}
	return fmt.Sprintf("it has %d others, such as %s", len(all), strings.Join(all[:8], ", "))
}
