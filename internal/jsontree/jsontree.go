// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsontree decodes, compares and merges trees of JSON: maps, lists, strings, booleans,
// int64 and float64. It reads and sets their fields, and knows nothing of kinds.
//
//	value ──▶ Of ──▶ tree     was, is ──▶ Diff ──▶ changes ──▶ Apply ──▶ a third tree
//	                          from, to ──▶ MergePatch ──▶ patch ──▶ Merge ──▶ a third tree
//
// Integers keep all their digits; libraries for JSON patches compare them as float64. All
// functions are pure, except for Apply, SetIn and KeepField, which modify an argument.
package jsontree

import (
	"encoding/json"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Of returns the JSON of a value as a tree. T is map[string]any, or any if the JSON may be
// something other than an object.
func Of[T any](value any) (tree T, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return tree, err
	}
	return tree, kjson.UnmarshalCaseSensitivePreserveInts(text, &tree)
}

// Equal returns what reflect.DeepEqual returns, without an allocation for each field.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalFields(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case nil, string, bool, int64, float64:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

func equalFields(a, b map[string]any) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for name, value := range a {
		if other, ok := b[name]; !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// Pointer returns the JSON pointer (RFC 6901) to a field, relative to its object.
func Pointer(name string) string { return "/" + escape.Replace(name) }

// IsZero reports whether a JSON value holds only zeros.
func IsZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, field := range v {
			if !IsZero(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(value).IsZero()
}
