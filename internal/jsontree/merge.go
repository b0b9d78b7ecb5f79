// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree

import "maps"

// MergePatch returns the JSON merge patch (RFC 7386) that turns one tree into another: null
// for a removed field, lists as a whole. The patch shares values with to.
func MergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			patch[name] = nil
		}
	}
	for name, after := range to {
		before, was := from[name]
		if was && Equal(before, after) {
			continue
		}
		inBefore, ok1 := before.(map[string]any)
		inAfter, ok2 := after.(map[string]any)
		if ok1 && ok2 {
			patch[name] = MergePatch(inBefore, inAfter)
		} else {
			patch[name] = after
		}
	}
	return patch
}

// Merge returns a tree after a JSON merge patch (RFC 7386): objects are merged, null removes
// a field, other values replace it. The result shares values with both arguments.
func Merge(tree, patch map[string]any) map[string]any {
	out := maps.Clone(tree)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, name)
		case map[string]any:
			inner, _ := out[name].(map[string]any)
			out[name] = Merge(inner, value)
		default:
			out[name] = value
		}
	}
	return out
}
