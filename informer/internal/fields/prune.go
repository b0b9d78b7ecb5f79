// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"reflect"
)

// Prune clears the fields of obj that s does not contain. obj is a pointer to a
// struct, or decoded JSON in maps (such as an unstructured.Unstructured). It
// must not be shared. Lists keep their length: an element of which nothing is
// kept becomes empty. So does an object below a pointer of which only other
// fields are set.
func Prune(obj any, s *Set) {
	if s == nil || obj == nil {
		return
	}
	if u, ok := obj.(tree); ok {
		pruneTree(u.UnstructuredContent(), s)
		return
	}
	if m, ok := obj.(map[string]any); ok {
		pruneTree(m, s)
		return
	}
	pruneValue(reflect.ValueOf(obj), s)
}

func pruneTree(v any, s *Set) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch sub, keep := s.Child(name); {
			case !keep:
				delete(v, name)
			case sub != nil:
				pruneTree(value, sub)
			}
		}
	case []any:
		for _, element := range v {
			pruneTree(element, s)
		}
	}
}

func pruneValue(v reflect.Value, s *Set) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !isLeaf(v.Type()) {
			pruneValue(v.Elem(), s)
		}
	case reflect.Slice, reflect.Array:
		if isLeaf(v.Type()) {
			return
		}
		for i := range v.Len() {
			pruneValue(v.Index(i), s)
		}
	case reflect.Struct:
		if !isLeaf(v.Type()) {
			pruneStruct(v, s)
		}
	}
}

func pruneStruct(v reflect.Value, s *Set) {
	for f := range fields(v.Type()) {
		of := v.FieldByIndex(f.Index)
		if f.inline {
			pruneValue(of, s)
			continue
		}
		switch sub, keep := s.Child(f.name); {
		case !keep:
			of.SetZero()
		case sub != nil:
			pruneValue(of, sub)
		}
	}
}
