// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
)

type node = map[string]any

// model is a server: what it stores of a value, and whether it accepts it.
type model struct{ schema node }

// stores returns v as it is stored. ok is false if v is refused.
func (m model) stores(v any) (stored any, ok bool) {
	stored = filled(m.schema, pruned(m.schema, clone(v)))
	return stored, valid(m.schema, stored)
}

func pruned(s node, v any) any {
	switch v := v.(type) {
	case node:
		properties, _ := s["properties"].(node)
		for key, value := range v {
			named, isNamed := properties[key].(node)
			every, isMap := s["additionalProperties"].(node)
			switch {
			case isNamed:
				v[key] = pruned(named, value)
			case isMap:
				v[key] = pruned(every, value)
			case s["x-kubernetes-preserve-unknown-fields"] != true:
				delete(v, key)
			}
		}
	case []any:
		if items, ok := s["items"].(node); ok {
			for i := range v {
				v[i] = pruned(items, v[i])
			}
		}
	}
	return v
}

func filled(s node, v any) any {
	switch v := v.(type) {
	case node:
		properties, _ := s["properties"].(node)
		for name, property := range properties {
			def, has := property.(node)["default"]
			if v[name] == nil && has {
				v[name] = clone(def)
			}
			if v[name] != nil {
				v[name] = filled(property.(node), v[name])
			}
		}
		if every, ok := s["additionalProperties"].(node); ok {
			for key := range v {
				v[key] = filled(every, v[key])
			}
		}
	case []any:
		if items, ok := s["items"].(node); ok {
			for i := range v {
				v[i] = filled(items, v[i])
			}
		}
	}
	return v
}

func valid(s node, v any) bool {
	if v == nil {
		return s["nullable"] == true
	}
	if enum, ok := s["enum"].([]any); ok && !slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return false
	}
	within := func(low, high string, n float64) bool {
		least, hasLeast := s[low].(float64)
		most, hasMost := s[high].(float64)
		return !(hasLeast && (n < least || n == least && s["exclusiveMinimum"] == true && low == "minimum")) &&
			!(hasMost && (n > most || n == most && s["exclusiveMaximum"] == true && high == "maximum"))
	}
	either := s["x-kubernetes-int-or-string"] == true
	switch v := v.(type) {
	case string:
		pattern, _ := s["pattern"].(string)
		return (s["type"] == nil || s["type"] == "string") && within("minLength", "maxLength", float64(len(v))) && regexp.MustCompile(pattern).MatchString(v)
	case float64:
		whole := v == math.Trunc(v)
		divisor, _ := s["multipleOf"].(float64)
		return (s["type"] == nil && (!either || whole) || s["type"] == "number" || s["type"] == "integer" && whole) && within("minimum", "maximum", v) &&
			(divisor == 0 || math.Mod(v, divisor) == 0)
	case bool:
		return s["type"] == nil && !either || s["type"] == "boolean"
	case []any:
		return (s["type"] == nil && !either || s["type"] == "array") && within("minItems", "maxItems", float64(len(v))) && validItems(s, v)
	case node:
		return (s["type"] == nil && !either || s["type"] == "object") && within("minProperties", "maxProperties", float64(len(v))) && validProperties(s, v)
	}
	return false
}

func validItems(s node, v []any) bool {
	items, _ := s["items"].(node)
	for i, item := range v {
		if items != nil && !valid(items, item) {
			return false
		}
		if s["x-kubernetes-list-type"] == "set" && slices.ContainsFunc(v[:i], func(other any) bool { return reflect.DeepEqual(other, item) }) {
			return false
		}
	}
	return true
}

func validProperties(s, v node) bool {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, has := v[name.(string)]; !has {
			return false
		}
	}
	properties, _ := s["properties"].(node)
	every, _ := s["additionalProperties"].(node)
	for key, value := range v {
		property, named := properties[key].(node)
		if named && !valid(property, value) || !named && every != nil && !valid(every, value) {
			return false
		}
	}
	return true
}

// admitted reports whether a server takes the schema: its defaults are valid.
func admitted(s node) bool {
	if def, has := s["default"]; has {
		if now, ok := (model{s}).stores(def); !ok || !reflect.DeepEqual(now, def) {
			return false
		}
	}
	properties, _ := s["properties"].(node)
	for _, property := range properties {
		if !admitted(property.(node)) {
			return false
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := s[keyword].(node); ok && !admitted(inner) {
			return false
		}
	}
	return true
}

func clone(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// world makes schemas and values by chance.
type world struct{ *rand.Rand }

func (w world) one(in ...any) any { return in[w.IntN(len(in))] }

var propertyNames = []string{"a", "b", "c"}

func (w world) schema(depth int) node {
	s := node{}
	kinds := []any{"string", "integer", "number", "boolean", "array", "object", "object", "either", "any"}
	if depth == 0 {
		kinds = []any{"string", "integer", "number", "boolean", "either"}
	}
	switch kind := w.one(kinds...); kind {
	case "either":
		s["x-kubernetes-int-or-string"] = true
	case "any":
		s["x-kubernetes-preserve-unknown-fields"] = true
	default:
		s["type"] = kind
	}
	switch s["type"] {
	case "array":
		s["items"] = w.schema(depth - 1)
	case "object":
		w.object(s, depth)
	}
	for range w.IntN(3) {
		w.constrain(s)
	}
	return s
}

func (w world) object(s node, depth int) {
	switch w.IntN(5) {
	case 0:
		s["additionalProperties"] = w.schema(depth - 1)
		return
	case 1:
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	properties := node{}
	for _, name := range propertyNames {
		if w.IntN(2) == 0 {
			properties[name] = w.schema(depth - 1)
		}
	}
	s["properties"] = properties
}

// constrain adds, changes or removes a keyword of s.
func (w world) constrain(s node) {
	small := float64(w.IntN(4))
	keyword, value := "nullable", any(true)
	switch s["type"] {
	case "string":
		keyword, value = w.one("minLength", "maxLength").(string), small
		switch w.IntN(4) {
		case 0:
			keyword, value = "enum", []any{w.one("", "x", "xy"), w.one("y", "xyz")}
		case 1:
			keyword, value = "pattern", w.one("x", "^x", "y$")
		}
	case "integer", "number":
		keyword, value = w.one("minimum", "maximum", "multipleOf").(string), small
		switch {
		case keyword == "multipleOf":
			value = small + 1
		case w.IntN(4) == 0:
			keyword, value = w.one("exclusiveMinimum", "exclusiveMaximum").(string), true
		}
	case "array":
		keyword, value = w.one("minItems", "maxItems").(string), small
		if w.IntN(3) == 0 {
			keyword, value = "x-kubernetes-list-type", w.one("set", "atomic")
		}
	case "object":
		keyword, value = w.one("minProperties", "maxProperties").(string), small
		if w.IntN(2) == 0 {
			keyword, value = "required", []any{w.one("a", "b", "c")}
		}
	}
	if w.IntN(4) == 0 {
		keyword, value = "nullable", w.IntN(2) == 0
	}
	if w.IntN(4) == 0 {
		keyword, value = "default", w.value(s, 1)
	}
	s[keyword] = value
	if w.IntN(4) == 0 {
		delete(s, keyword)
	}
}

// changed returns s with one change somewhere.
func (w world) changed(s node, depth int) node {
	s = clone(s).(node)
	at := s
	for w.IntN(3) > 0 {
		var inner []node
		properties, _ := at["properties"].(node)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			inner = append(inner, properties[name].(node))
		}
		for _, keyword := range []string{"items", "additionalProperties"} {
			if one, ok := at[keyword].(node); ok {
				inner = append(inner, one)
			}
		}
		if len(inner) == 0 {
			break
		}
		at = inner[w.IntN(len(inner))]
	}
	properties, _ := at["properties"].(node)
	switch name := w.one("a", "b", "c").(string); w.IntN(8) {
	case 0:
		if properties != nil {
			properties[name] = w.schema(depth - 1)
		}
	case 1:
		delete(properties, name)
	case 2:
		fresh := w.schema(depth - 1)
		clear(at)
		maps.Copy(at, fresh)
	case 3:
		delete(at, "x-kubernetes-preserve-unknown-fields")
		if at["type"] == nil && at["x-kubernetes-int-or-string"] == nil {
			at["type"] = "object"
		}
	case 4:
		if at["type"] == "integer" {
			at["type"] = "number"
		}
	case 5:
		if at["type"] == "object" && at["properties"] == nil {
			at["x-kubernetes-preserve-unknown-fields"] = true
			delete(at, "additionalProperties")
		}
	default:
		w.constrain(at)
	}
	return s
}

// value returns a value, mostly of the type of s.
func (w world) value(s node, depth int) any {
	kind, _ := s["type"].(string)
	if kind == "" || w.IntN(20) == 0 {
		kind = w.one("string", "integer", "number", "boolean", "array", "object").(string)
	}
	if s["nullable"] == true && w.IntN(4) == 0 {
		return nil
	}
	switch kind {
	case "string":
		return w.one("", "x", "xy", "xyz", "y")
	case "integer":
		return float64(w.IntN(6) - 1)
	case "number":
		return float64(w.IntN(12)-2) / 2
	case "boolean":
		return w.IntN(2) == 0
	case "array":
		out := []any{}
		items, _ := s["items"].(node)
		for range w.IntN(3) {
			out = append(out, w.value(items, depth-1))
		}
		return out
	}
	out := node{}
	properties, _ := s["properties"].(node)
	every, _ := s["additionalProperties"].(node)
	for _, name := range propertyNames {
		property, named := properties[name].(node)
		if depth > -3 && (named || w.IntN(3) == 0) && w.IntN(4) > 0 {
			if !named {
				property = every
			}
			out[name] = w.value(property, depth-1)
		}
	}
	return out
}

// An update without a narrowing keeps and accepts each value that is stored.
func FuzzNarrowings_KeepWhatIsStored_O7(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{rand.New(rand.NewPCG(seed, 1))}
		for range 30 {
			from := node{"type": "object"}
			w.object(from, 2)
			to := from
			for range 1 + w.IntN(2) {
				to = w.changed(to, 2)
			}
			if !admitted(from) || !admitted(to) {
				continue
			}
			if lost := crdinstall.Narrowings(holding(from), holding(to)); len(lost) > 0 {
				continue
			}
			for range 30 {
				stored, ok := model{from}.stores(w.value(from, 2))
				if !ok {
					continue
				}
				kept := pruned(to, clone(stored))
				_, accepted := model{to}.stores(stored)
				if !accepted || !reflect.DeepEqual(kept, stored) {
					t.Fatalf("seed %d: no narrowing, but of %s\nis kept %s, accepted: %t\nfrom %s\nto   %s", seed, show(stored), show(kept), accepted, show(from), show(to))
				}
			}
		}
	})
}

// The fuzz target's chances are good enough: many updates narrow, many do not, and many
// values are stored.
func TestNarrowings_TheModelSeesBoth_O7(t *testing.T) {
	w := world{rand.New(rand.NewPCG(1, 1))}
	narrowed, widened, harmed, stored := 0, 0, 0, 0
	for range 3000 {
		from := node{"type": "object"}
		w.object(from, 2)
		to := w.changed(from, 2)
		if !admitted(from) || !admitted(to) || reflect.DeepEqual(from, to) {
			continue
		}
		narrows := len(crdinstall.Narrowings(holding(from), holding(to))) > 0
		harm := false
		for range 30 {
			if v, ok := (model{from}).stores(w.value(from, 2)); ok {
				stored++
				_, accepted := model{to}.stores(v)
				harm = harm || !accepted || !reflect.DeepEqual(pruned(to, clone(v)), v)
			}
		}
		switch {
		case narrows && harm:
			harmed++
			narrowed++
		case narrows:
			narrowed++
		default:
			widened++
		}
	}
	t.Logf("%d updates narrow, %d of them harm a value of the model; %d do not; %d values were stored", narrowed, harmed, widened, stored)
	if narrowed < 300 || widened < 300 || harmed < narrowed/3 || stored < 5000 {
		t.Errorf("%d updates narrow (%d harm a value), %d do not, %d values were stored; the fuzz target looks at too little", narrowed, harmed, widened, stored)
	}
}

// holding returns a definition with the schema at .spec.
func holding(schema node) map[string]any {
	return node{"spec": node{"versions": []any{node{
		"name": "v1", "served": true, "storage": true,
		"schema": node{"openAPIV3Schema": node{"type": "object", "properties": node{"spec": clone(schema)}}},
	}}}}
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
