// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree

import (
	"maps"
	"slices"
	"strings"
)

// SetIn sets a value at a path and creates missing maps on the way.
func SetIn(fields map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		inner, ok := fields[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			fields[name] = inner
		}
		fields = inner
	}
	fields[path[len(path)-1]] = value
}

// KeepField copies a field from one map to the other, or removes it there if from lacks it.
func KeepField(from, to map[string]any, name string) {
	if value, ok := from[name]; ok {
		to[name] = value
	} else if to != nil {
		delete(to, name)
	}
}

// SplitPath splits a JSON path of plain names, as "spec.color" or
// "spec['a.b']".
func SplitPath(path string) (names []string) {
	for path != "" {
		if inner, ok := strings.CutPrefix(path, "['"); ok {
			name, rest, _ := strings.Cut(inner, "']")
			names, path = append(names, name), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		names, path = append(names, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return names
}

// Lookup returns the value at a path, or nil if there is none. "0" is the first item of a
// list.
func Lookup(fields map[string]any, path []string) (value any) {
	if len(path) == 0 {
		return nil
	}
	value = fields
	for _, name := range path {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[name]
		case []any:
			if name != "0" || len(inner) == 0 {
				return nil
			}
			value = inner[0]
		default:
			return nil
		}
	}
	return value
}

// SameBut reports whether two objects are equal except for some fields.
func SameBut(a, b map[string]any, but ...string) bool {
	for _, pair := range [][2]map[string]any{{a, b}, {b, a}} {
		for name, value := range pair[0] {
			if slices.Contains(but, name) {
				continue
			}
			other, ok := pair[1][name]
			if !ok || !Equal(value, other) {
				return false
			}
		}
	}
	return true
}

// Unmanaged returns an object without its managed fields, which no rule reads.
func Unmanaged(fields map[string]any) map[string]any {
	metadata, _ := fields["metadata"].(map[string]any)
	if _, has := metadata["managedFields"]; !has {
		return fields
	}
	fields, metadata = maps.Clone(fields), maps.Clone(metadata)
	delete(metadata, "managedFields")
	fields["metadata"] = metadata
	return fields
}
