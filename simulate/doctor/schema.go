// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// mutation is a change of one field to another valid value.
type mutation struct {
	path  path
	how   string // such as "changed" or "removed"
	was   any    // nil: it is not there
	value any    // nil: it is removed
	grows bool   // it is a number of things
}

// pauses reports whether a program that makes the change leaves things as they are from then on.
func (m mutation) pauses() bool {
	name, _ := m.path[len(m.path)-1].(string)
	return m.value == true && slices.Contains([]string{"pause", "paused", "suspend", "suspended"}, name)
}

// path is where a field is: names, and indexes of lists.
type path []any

func (p path) String() string {
	var b strings.Builder
	for i, part := range p {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", part)
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(part)
		}
	}
	return b.String()
}

var errNoPlace = errors.New("the object that has the field is not there")

// set sets a field to a copy of value, or removes it if that is nil.
func (p path) set(tree map[string]any, value any) error {
	var at any = tree
	for i, part := range p {
		last := i == len(p)-1
		switch part := part.(type) {
		case string:
			fields, ok := at.(map[string]any)
			switch {
			case !ok:
				return fmt.Errorf("%s: %w", p, errNoPlace)
			case last && value == nil:
				delete(fields, part)
			case last:
				fields[part] = runtime.DeepCopyJSONValue(value)
			case fields[part] == nil:
				if value == nil {
					return nil
				}
				fields[part] = map[string]any{}
			}
			at = fields[part]
		case int:
			list, ok := at.([]any)
			if !ok || part >= len(list) {
				return fmt.Errorf("%s: %w", p, errNoPlace)
			}
			if last {
				list[part] = runtime.DeepCopyJSONValue(value)
			}
			at = list[part]
		}
	}
	return nil
}

func valueText(value any) string {
	if value == nil {
		return "nothing"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return short(strings.TrimSpace(text.String()))
}

const (
	mostDepth = 6
	// mostFields bounds the fields of a sample that are changed.
	mostFields = 60
)

// schemaOf returns the schema of an object's kind and version in CRDs; nil: there is none.
func schemaOf(crds []*unstructured.Unstructured, of *unstructured.Unstructured) map[string]any {
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		gvk := of.GroupVersionKind()
		if group != gvk.Group || kind != gvk.Kind {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if version["name"] == gvk.Version {
				schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
				return schema
			}
		}
	}
	return nil
}

// schemaLike returns a schema of the fields that a value has, for a kind whose schema is not known. The server refuses what
// the kind does not allow.
func schemaLike(value any) map[string]any {
	schema := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, inner := range value {
			fields[name] = schemaLike(inner)
		}
		schema["properties"] = fields
	case []any:
		if len(value) > 0 {
			schema["items"] = schemaLike(value[0])
		}
	}
	return schema
}

// mutationsOf returns changes of the fields of an object's spec that its schema allows: those that it has, and
// those that it may have. The server may still refuse them, by a rule or a webhook.
func mutationsOf(schema map[string]any, of *unstructured.Unstructured) []mutation {
	m := mutator{}
	m.object(path{}, properties(schema), nil, of.Object, 0)
	slices.SortStableFunc(m.out, func(a, b mutation) int { return priority(a) - priority(b) })
	return m.out[:min(len(m.out), mostFields)]
}

// priority orders mutations: those of fields that are there come first.
func priority(m mutation) int {
	switch {
	case m.was != nil && m.value != nil:
		return 0
	case m.was != nil:
		return 1
	}
	return 2
}

type mutator struct{ out []mutation }

func properties(schema map[string]any) map[string]any {
	found, _ := schema["properties"].(map[string]any)
	return found
}

// object changes the fields of an object one after the other.
func (m *mutator) object(at path, fields map[string]any, required []any, is map[string]any, depth int) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if depth == 0 && (name == "apiVersion" || name == "kind" || name == "metadata" || name == "status") {
			continue
		}
		schema, _ := fields[name].(map[string]any)
		inner := append(slices.Clone(at), name)
		m.value(inner, schema, is[name], depth+1)
		if is[name] != nil && depth > 0 && !slices.Contains(required, any(name)) {
			m.out = append(m.out, mutation{path: inner, how: "removed", was: is[name]})
		}
	}
}

// value changes a value, or what it has inside.
func (m *mutator) value(at path, schema map[string]any, is any, depth int) {
	if depth > mostDepth {
		return
	}
	if other, ok := otherValue(at, schema, is); ok {
		m.out = append(m.out, mutation{path: at, how: "changed", was: is, value: other, grows: isCount(at, is)})
		if n, ok := is.(int64); ok && isCount(at, is) && n > 1 && n-1 >= least(schema) && other != n-1 {
			m.out = append(m.out, mutation{path: at, how: "lowered", was: is, value: n - 1, grows: true})
		}
		return
	}
	switch is := is.(type) {
	case map[string]any:
		required, _ := schema["required"].([]any)
		m.object(at, properties(schema), required, is, depth)
		if extra, ok := schema["additionalProperties"].(map[string]any); ok && extra["type"] == "string" {
			m.out = append(m.out, mutation{path: append(slices.Clone(at), "doctor"), how: "added", value: "x"})
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		if len(is) > 0 {
			m.value(append(slices.Clone(at), 0), items, is[0], depth+1)
			m.out = append(m.out, mutation{path: at, how: "shortened", was: is, value: slices.Clone(is[:len(is)-1])})
		}
	}
}

// isCount reports whether a field is a number of things, such as replicas.
func isCount(at path, is any) bool {
	name, _ := at[len(at)-1].(string)
	name = strings.ToLower(name)
	if _, isNumber := is.(int64); !isNumber {
		return false
	}
	for _, word := range []string{"replica", "size", "count", "node", "member", "instance", "parallelism", "shard"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// otherValue returns another valid value of a simple type.
func otherValue(at path, schema map[string]any, is any) (other any, ok bool) {
	if values, isEnum := schema["enum"].([]any); isEnum {
		for _, value := range values {
			if value != is && value != "" {
				return value, true
			}
		}
		return nil, false
	}
	if is == nil {
		is = schema["default"]
	}
	switch is := is.(type) {
	case bool:
		return !is, true
	case int64:
		if most, ok := number(schema["maximum"]); ok && is+1 > most {
			return is - 1, true
		}
		return is + 1, true
	case float64:
		return is + 1, true
	case string:
		return otherText(at, schema, is)
	case nil:
		if schema["type"] == "boolean" {
			return true, true
		}
		if least, ok := number(schema["minimum"]); ok && schema["type"] == "integer" {
			return least + 1, true
		}
	}
	return nil, false
}

// otherText returns another text: a quantity stays a quantity, and a duration a duration.
func otherText(at path, schema map[string]any, is string) (other any, ok bool) {
	if schema["format"] == "date-time" || schema["format"] == "byte" {
		return nil, false
	}
	if q, err := resource.ParseQuantity(is); err == nil && is != "" {
		q.Add(q.DeepCopy())
		return q.String(), true
	}
	name, _ := at[len(at)-1].(string)
	if schema["pattern"] != nil || strings.HasSuffix(name, "Ref") || is == "" {
		return nil, false
	}
	return is + "2", true
}

func least(schema map[string]any) int64 {
	n, _ := number(schema["minimum"])
	return n
}

func number(value any) (n int64, ok bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case float64:
		return int64(value), true
	}
	return 0, false
}
