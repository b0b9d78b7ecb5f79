// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

// patch returns the JSON patch (RFC 6902) that applies to raw the change from before to
// after, two views of it that may lack fields of raw. It is nil if nothing changes.
func patch(raw []byte, before, after any) ([]byte, error) {
	var original any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &original); err != nil {
		return nil, badRequest("decode object: %w", err)
	}
	var ops operations
	ops.difference("", original, carry(original, before, after))
	if len(ops) == 0 {
		return nil, nil
	}
	return json.Marshal(ops)
}

func treeOf(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var t any
	return t, kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
}

// equal compares two trees of JSON values. Unlike reflect.DeepEqual it does not
// allocate for each map entry.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, there := b[name]; !there || !equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// carry returns original with the change from before to after. It does not modify its
// arguments; the result may share values with them.
func carry(original, before, after any) any {
	if equal(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		original, ok1 := original.(map[string]any)
		before, ok2 := before.(map[string]any)
		if ok1 && ok2 {
			return carryMap(original, before, after)
		}
	case []any:
		original, ok1 := original.([]any)
		before, ok2 := before.([]any)
		if ok1 && ok2 && len(original) == len(before) {
			return carryList(original, before, after)
		}
	}
	return after
}

func carryMap(original, before, after map[string]any) map[string]any {
	out := maps.Clone(original)
	for name := range before {
		if _, stays := after[name]; !stays {
			delete(out, name)
		}
	}
	for name, value := range after {
		was, known := before[name]
		has, there := original[name]
		switch {
		case known && equal(was, value):
			// Unchanged: it stays as written, or omitted.
		case known && there:
			out[name] = carry(has, was, value)
		default:
			out[name] = value
		}
	}
	return out
}

// carryList matches each element of after with the one it comes from, to preserve
// fields that the view does not show.
func carryList(original, before, after []any) []any {
	from := origins(before, after)
	out := make([]any, len(after))
	for i, value := range after {
		if j := from[i]; j >= 0 {
			out[i] = carry(original[j], before[j], value)
		} else {
			out[i] = value
		}
	}
	return out
}

// manyPairs bounds the pairs of elements that are compared. Beyond it, elements that
// were moved within a list count as new.
const manyPairs = 1 << 20

// origins returns for each element of after the index of its origin in before; -1: it
// is new. It matches equal beginnings and ends, then equal elements in order, then
// elements of the same name; the rest is matched in order if nothing was added or
// removed.
func origins(before, after []any) []int {
	from := make([]int, len(after))
	for i := range from {
		from[i] = -1
	}
	taken := make([]bool, len(before))
	match := func(i, j int) { from[i], taken[j] = j, true }

	start := 0
	for start < min(len(before), len(after)) && equal(before[start], after[start]) {
		match(start, start)
		start++
	}
	for end := 1; end <= min(len(before), len(after))-start; end++ {
		i, j := len(after)-end, len(before)-end
		if !equal(before[j], after[i]) {
			break
		}
		match(i, j)
	}
	if (len(before)-start)*(len(after)-start) > manyPairs {
		return from
	}
	pair := func(same func(a, b any) bool) {
		for i := range after {
			for j := 0; from[i] < 0 && j < len(before); j++ {
				if !taken[j] && same(before[j], after[i]) {
					match(i, j)
				}
			}
		}
	}
	pair(equal)
	pair(func(a, b any) bool { return nameIn(a) != "" && nameIn(a) == nameIn(b) })
	if len(before) == len(after) {
		for i := range after {
			if from[i] < 0 && !taken[i] && nameIn(before[i]) == nameIn(after[i]) {
				match(i, i)
			}
		}
	}
	return from
}

// nameIn returns the name of a list element; empty: none.
func nameIn(element any) string {
	if fields, ok := element.(map[string]any); ok {
		name, _ := fields["name"].(string)
		return name
	}
	return ""
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON omits the value of a remove.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]string{"op": o.Op, "path": o.Path})
	}
	type plain operation
	return json.Marshal(plain(o))
}

type operations []operation

func (ops *operations) add(op, path string, value any) {
	*ops = append(*ops, operation{op, path, value})
}

// difference adds the operations that turn from into to, at path.
func (ops *operations) difference(path string, from, to any) {
	switch to := to.(type) {
	case map[string]any:
		if from, ok := from.(map[string]any); ok {
			ops.differenceMap(path, from, to)
			return
		}
	case []any:
		if from, ok := from.([]any); ok {
			ops.differenceList(path, from, to)
			return
		}
	}
	if !equal(from, to) {
		ops.add("replace", path, to)
	}
}

func (ops *operations) differenceMap(path string, from, to map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			ops.add("remove", path+"/"+escape(name), nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if was, known := from[name]; known && equal(was, to[name]) {
			continue // most of an object; avoids building its path
		} else if known {
			ops.difference(path+"/"+escape(name), was, to[name])
		} else {
			ops.add("add", path+"/"+escape(name), to[name])
		}
	}
}

// differenceList changes elements in place; if elements were added or removed before
// others, it replaces the whole list.
func (ops *operations) differenceList(path string, from, to []any) {
	shared := min(len(from), len(to))
	if len(from) != len(to) && !equal(from[:shared], to[:shared]) {
		ops.add("replace", path, to)
		return
	}
	for i := range shared {
		if equal(from[i], to[i]) {
			continue
		}
		ops.difference(path+"/"+strconv.Itoa(i), from[i], to[i])
	}
	for i := len(from) - 1; i >= shared; i-- {
		ops.add("remove", path+"/"+strconv.Itoa(i), nil)
	}
	for _, added := range to[shared:] {
		ops.add("add", path+"/-", added)
	}
}

// escape escapes a field name for a JSON pointer (RFC 6901).
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
