// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// patch returns the JSON patch (RFC 6902) that applies to raw the change from before to
// after, two views of it that may lack fields of raw. It is nil if nothing changes.
//
// lost is called with the paths of lists in which it is not known where an element comes
// from, beside elements with fields that the views do not show. It returns an error if those
// are to be kept: no element gets fields of another.
func patch(raw []byte, before, after any, lost func(lists []string) error) ([]byte, error) {
	var original any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &original); err != nil {
		return nil, badRequest("decode object: %w", err)
	}
	var c carrier
	result := c.carry("", original, before, after)
	if len(c.doubts) > 0 {
		if err := lost(c.doubts); err != nil {
			return nil, err
		}
	}
	var ops operations
	ops.difference("", original, result)
	if len(ops) == 0 {
		return nil, nil
	}
	return json.Marshal(ops)
}

// unknownIn returns an error if raw has fields, in one of the lists, that obj does not know.
func unknownIn(raw []byte, obj any, lists []string) error {
	strict, err := kjson.UnmarshalStrict(raw, reflect.New(reflect.TypeOf(obj).Elem()).Interface())
	if err != nil {
		return badRequest("decode object: %w", err)
	}
	const most = 100 // the decoder reports no more
	if len(strict) >= most {
		return internal(fmt.Errorf("the function changed the list %s so that it is not certain where its elements come from, and %T does not know %d fields or more: "+
			"use a type that knows them, or *unstructured.Unstructured", lists[0], obj, most))
	}
	for _, one := range strict {
		_, field, _ := strings.Cut(one.Error(), "unknown field ")
		if field, err = strconv.Unquote(field); err != nil {
			continue // a field that is there twice
		}
		for _, list := range lists {
			if strings.HasPrefix(field, list+"[") {
				return internal(fmt.Errorf("the function changed the list %s so that it is not certain which element has the field %q, which %T does not know: "+
					"use a type that knows it, or *unstructured.Unstructured", list, field, obj))
			}
		}
	}
	return nil
}

// carrier carries changes over to an original. It notes the lists of which it does not
// know where an element comes from, by the paths that decoders use in errors.
type carrier struct{ doubts []string }

// carry returns original with the change from before to after. It does not modify its
// arguments; the result may share values with them.
func (c *carrier) carry(path string, original, before, after any) any {
	if jsontree.Equal(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		original, ok1 := original.(map[string]any)
		before, ok2 := before.(map[string]any)
		if ok1 && ok2 {
			return c.carryMap(path, original, before, after)
		}
	case []any:
		original, ok1 := original.([]any)
		before, ok2 := before.([]any)
		if ok1 && ok2 && len(original) == len(before) {
			return c.carryList(path, original, before, after)
		}
		if ok1 && ok2 {
			c.doubts = append(c.doubts, path)
		}
	}
	return after
}

func (c *carrier) carryMap(path string, original, before, after map[string]any) map[string]any {
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
		case known && jsontree.Equal(was, value):
			// Unchanged: it stays as written, or omitted.
		case there && (known || isMap(has)): // a view may omit what has only other fields
			if !known {
				was = map[string]any{}
			}
			out[name] = c.carry(strings.TrimPrefix(path+"."+name, "."), has, was, value)
		default:
			out[name] = value
		}
	}
	return out
}

func isMap(value any) bool {
	_, is := value.(map[string]any)
	return is
}

// carryList matches each element of after with the one it comes from, to preserve
// fields that the view does not show.
func (c *carrier) carryList(path string, original, before, after []any) []any {
	m := origins(original, before, after)
	if m.doubt {
		c.doubts = append(c.doubts, path)
	}
	out := make([]any, len(after))
	for i, value := range after {
		if j := m.from[i]; j >= 0 {
			out[i] = c.carry(path+"["+strconv.Itoa(j)+"]", original[j], before[j], value)
		} else {
			out[i] = value
		}
	}
	return out
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
	if !jsontree.Equal(from, to) {
		ops.add("replace", path, to)
	}
}

func (ops *operations) differenceMap(path string, from, to map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			ops.add("remove", path+jsontree.Pointer(name), nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if was, known := from[name]; known && jsontree.Equal(was, to[name]) {
			continue // most of an object; avoids building its path
		} else if known {
			ops.difference(path+jsontree.Pointer(name), was, to[name])
		} else {
			ops.add("add", path+jsontree.Pointer(name), to[name])
		}
	}
}

// differenceList changes elements in place; if elements were added or removed before
// others, it replaces the whole list.
func (ops *operations) differenceList(path string, from, to []any) {
	shared := min(len(from), len(to))
	if len(from) != len(to) && !jsontree.Equal(from[:shared], to[:shared]) {
		ops.add("replace", path, to)
		return
	}
	for i := range shared {
		if jsontree.Equal(from[i], to[i]) {
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
