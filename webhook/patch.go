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

// patch is the JSON patch (RFC 6902) that does to the object raw what was done
// between before and after, two views of it that may lack fields of raw. It is nil
// if there is nothing to do.
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

// treeOf is obj as JSON values.
func treeOf(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var t any
	return t, kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
}

// equal compares two trees of JSON values. It allocates nothing, as reflect.DeepEqual
// does for each entry of a map.
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

// carry is original with the change from before to after. Nothing of the arguments
// is changed; the result may share with them.
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
			// Nobody touched it: it stays as it is written, or left out.
		case known && there:
			out[name] = carry(has, was, value)
		default:
			out[name] = value
		}
	}
	return out
}

// carryList finds for each element of after the one it comes from, so that what the
// view does not show of that goes with it.
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

// manyPairs is how many pairs of elements are compared. Beyond that, what was moved
// within a list counts as new.
const manyPairs = 1 << 20

// origins says for each element of after which one of before it comes from; -1: it
// is new. Equal beginnings and ends belong together, then equal elements in their
// order, then those of one name; what is left is taken in order if nothing was added
// or removed.
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

// nameIn is the name that an element of a list has; empty: none.
func nameIn(element any) string {
	if fields, ok := element.(map[string]any); ok {
		name, _ := fields["name"].(string)
		return name
	}
	return ""
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON leaves the value out where there is none to be.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]string{"op": o.Op, "path": o.Path})
	}
	type plain operation
	return json.Marshal(plain(o))
}

// operations turn one tree of JSON values into another.
type operations []operation

func (ops *operations) add(op, path string, value any) {
	*ops = append(*ops, operation{op, path, value})
}

// difference adds what makes to of from, at path.
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
			continue // most of an object; no path is made for it
		} else if known {
			ops.difference(path+"/"+escape(name), was, to[name])
		} else {
			ops.add("add", path+"/"+escape(name), to[name])
		}
	}
}

// differenceList changes elements in their places; what was added or removed before
// others has the list written whole.
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

// escape writes a field's name as a part of a JSON pointer (RFC 6901).
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
