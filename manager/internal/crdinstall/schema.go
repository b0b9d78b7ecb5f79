// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// Narrowing is a change that takes something from the clients of a CustomResourceDefinition.
type Narrowing struct {
	// Path of what changes, such as "v1: .spec.replicas".
	Path string
	// Change in words, such as "the maximum falls from 10 to 5".
	Change string
}

func (n Narrowing) String() string { return n.Path + ": " + n.Change }

// node is a JSON schema.
type node = map[string]any

// anything is the schema of a value that is neither checked nor pruned.
func anything() node { return node{"x-kubernetes-preserve-unknown-fields": true} }

// comparison collects what a new schema takes from the values of an old one.
type comparison struct {
	found   []Narrowing
	dropped bool // collects only what is dropped, not what is refused
}

func (c *comparison) add(path, format string, args ...any) {
	if !c.dropped {
		c.drop(path, format, args...)
	}
}

// drop notes that values are lost.
func (c *comparison) drop(path, format string, args ...any) {
	c.found = append(c.found, Narrowing{path, fmt.Sprintf(format, args...)})
}

// free are the keywords that neither refuse nor drop a value. A default is judged where it
// stands in for a required property.
var free = []string{"title", "description", "example", "externalDocs", "default", "id", "$schema"}

// compared are the keywords that schema compares.
var compared = []string{
	"type", "format", "nullable", "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems", "pattern",
	"required", "properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
}

// schema notes what to refuses or drops of the values that from takes. root is set for the
// object itself, whose metadata the server knows.
func (c *comparison) schema(path string, from, to node, root bool) {
	if !c.types(path, from, to) {
		return // the other keywords are of another type
	}
	c.bounds(path, from, to)
	c.values(path, from, to)
	c.lists(path, from, to)
	c.rules(path, from, to)
	c.alternatives(path, from, to)
	c.required(path, from, to)
	c.properties(path, from, to, root)
	if f, t := object(from["items"]), object(to["items"]); t != nil {
		if f == nil {
			f = anything()
		}
		c.schema(path+"[]", f, t, false)
	}
	for _, keyword := range slices.Sorted(maps.Keys(to)) {
		if !slices.Contains(free, keyword) && !slices.Contains(compared, keyword) && !equal(from[keyword], to[keyword]) {
			c.add(path, "%s changes from %s to %s, which may refuse values", keyword, show(from[keyword]), show(to[keyword]))
		}
	}
}

// types compares the JSON types, and reports whether the other keywords can be compared.
func (c *comparison) types(path string, from, to node) bool {
	f, t := typesOf(from), typesOf(to)
	if t != nil && (f == nil || slices.ContainsFunc(f, func(one string) bool { return !takes(t, one) })) {
		c.add(path, "the type changes from %s to %s", orAny(f), orAny(t))
		return false
	}
	if is(from, "nullable") && !is(to, "nullable") {
		c.add(path, "null is no longer allowed")
	}
	before, after := text(from["format"]), text(to["format"])
	wider := before == "int32" && after == "int64" || before == "float" && after == "double" ||
		before == "" && (after == "int64" || after == "double") // as JSON is decoded
	if after != "" && before != after && !wider {
		c.add(path, "the format changes from %s to %q, which may refuse values", orNone(before), after)
	}
	return true
}

// typesOf returns the types that a schema takes; nil: all.
func typesOf(n node) []string {
	if is(n, "x-kubernetes-int-or-string") {
		return []string{"integer", "string"}
	}
	if one := text(n["type"]); one != "" {
		return []string{one}
	}
	return nil
}

func takes(types []string, one string) bool {
	return slices.Contains(types, one) || one == "integer" && slices.Contains(types, "number")
}

func orAny(types []string) string {
	if types == nil {
		return "any"
	}
	return strings.Join(types, " or ")
}

// bounds compares numbers, lengths and counts.
func (c *comparison) bounds(path string, from, to node) {
	for _, b := range [...]struct {
		keyword, exclusive string
		lower              bool
	}{
		{"minimum", "exclusiveMinimum", true}, {"maximum", "exclusiveMaximum", false},
		{"minLength", "", true}, {"maxLength", "", false},
		{"minItems", "", true}, {"maxItems", "", false},
		{"minProperties", "", true}, {"maxProperties", "", false},
	} {
		after := number(to[b.keyword])
		if after == nil || b.keyword == "maxLength" && boundsQuantity(from, to) {
			continue
		}
		before := number(from[b.keyword])
		if before == nil && b.lower && b.exclusive == "" {
			before = number(0) // a length is never negative
		}
		order := 1 // any bound is tighter than none
		if before != nil {
			order = after.Cmp(before)
			if !b.lower {
				order = -order
			}
		}
		if order > 0 || order == 0 && is(to, b.exclusive) && !is(from, b.exclusive) {
			c.add(path, "%s changes from %s to %s", b.keyword, bound(from, b.keyword, b.exclusive), bound(to, b.keyword, b.exclusive))
		}
	}
	c.multiples(path, from, to)
}

func (c *comparison) multiples(path string, from, to node) {
	if after := number(to["multipleOf"]); after != nil && after.Sign() != 0 {
		if before := number(from["multipleOf"]); before == nil || !new(big.Rat).Quo(before, after).IsInt() {
			c.add(path, "multipleOf changes from %s to %s", show(from["multipleOf"]), show(to["multipleOf"]))
		}
	}
}

func bound(n node, keyword, exclusive string) string {
	if exclusive != "" && is(n, exclusive) {
		return show(n[keyword]) + " (exclusive)"
	}
	return show(n[keyword])
}

// values compares enums and patterns.
func (c *comparison) values(path string, from, to node) {
	if allowed, has := to["enum"].([]any); has {
		before, had := from["enum"].([]any)
		if !had {
			c.add(path, "only %s are allowed; any value was", show(allowed))
		} else if gone := without(before, allowed); len(gone) > 0 {
			c.add(path, "the enum loses %s", show(gone))
		}
	}
	if before, after := text(from["pattern"]), text(to["pattern"]); after != "" && before != after && !boundsQuantity(from, to) {
		c.add(path, "the pattern changes from %s to %q, which may refuse values", orNone(before), after)
	}
}

// boundsQuantity reports whether to accepts the quantities of from that a program can
// decode: flyball crds bounds their exponents.
func boundsQuantity(from, to node) bool {
	if text(to["pattern"]) != decodelimit.BoundQuantity || !equal(to["maxLength"], decodelimit.LongestQuantity) || from["maxLength"] != nil {
		return false
	}
	return text(from["pattern"]) == decodelimit.AnyQuantity
}

// lists compares what a list demands of its items together.
func (c *comparison) lists(path string, from, to node) {
	if is(to, "uniqueItems") && !is(from, "uniqueItems") {
		c.add(path, "items must be unique")
	}
	before, after := text(from["x-kubernetes-list-type"]), text(to["x-kubernetes-list-type"])
	if after != "set" && after != "map" {
		return
	}
	if before != after {
		c.add(path, "the list type changes from %s to %q, whose items must be unique", orNone(before), after)
		return
	}
	if f, t := from["x-kubernetes-list-map-keys"], to["x-kubernetes-list-map-keys"]; !sameItems(f, t) {
		c.add(path, "the keys of the list change from %s to %s", show(f), show(t))
	}
}

// rules compares CEL validations.
func (c *comparison) rules(path string, from, to node) {
	before := map[string]bool{}
	each(from["x-kubernetes-validations"], func(rule node) { before[text(rule["rule"])] = true })
	each(to["x-kubernetes-validations"], func(rule node) {
		if !before[text(rule["rule"])] {
			c.add(path, "there is a new rule: %s", text(rule["rule"]))
		}
	})
}

// alternatives compares logical junctors, which are equal or not comparable.
func (c *comparison) alternatives(path string, from, to node) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not"} {
		f, t := from[keyword], to[keyword]
		before, _ := f.([]any)
		after, _ := t.([]any)
		switch {
		case t == nil || equal(f, t):
		case keyword == "allOf" && len(without(after, before)) == 0:
		case keyword == "anyOf" && len(before) > 0 && len(without(before, after)) == 0:
		case keyword == "anyOf" && is(to, "x-kubernetes-int-or-string") && equal(t, []any{node{"type": "integer"}, node{"type": "string"}}):
		default:
			c.add(path, "%s changes, which may refuse values", keyword)
		}
	}
}

// required compares the properties that must be set, by the client or by a default.
func (c *comparison) required(path string, from, to node) {
	before := names(from["required"])
	for _, name := range slices.Sorted(maps.Keys(names(to["required"]))) {
		_, defaulted := property(to, name)["default"]
		_, was := property(from, name)["default"]
		switch {
		case defaulted:
		case !before[name]:
			c.add(path+"."+name, "it becomes required, and has no default")
		case was:
			c.add(path+"."+name, "it is required, and loses its default")
		}
	}
	if to["maxProperties"] != nil {
		for name := range object(to["properties"]) {
			_, defaulted := property(to, name)["default"]
			if _, was := property(from, name)["default"]; defaulted && !was {
				c.add(path+"."+name, "it gets a default, and counts for maxProperties")
			}
		}
	}
}

// properties compares what is kept of an object, and how.
func (c *comparison) properties(path string, from, to node, root bool) {
	resource := root || is(to, "x-kubernetes-embedded-resource")
	if is(to, "x-kubernetes-embedded-resource") && !is(from, "x-kubernetes-embedded-resource") {
		c.add(path, "it must be a whole object, with apiVersion and kind")
	}
	named := node{}
	maps.Copy(named, object(from["properties"]))
	maps.Copy(named, object(to["properties"]))
	if is(from, "x-kubernetes-embedded-resource") {
		for _, name := range served {
			named[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if resource && slices.Contains(served, name) && (property(from, name) == nil || property(to, name) == nil) {
			continue // the server keeps it in any case
		}
		f, t := member(from, name), member(to, name)
		switch {
		case f == nil: // it was dropped
		case t == nil:
			c.drop(path+"."+name, "the property is removed: the server drops its values")
		default:
			c.schema(path+"."+name, f, t, false)
		}
	}
	c.additional(path, from, to)
}

// additional compares the values of properties that have no schema of their own.
func (c *comparison) additional(path string, from, to node) {
	switch f, t := others(from), others(to); {
	case f == nil || !holdsObjects(to):
	case t == nil:
		c.drop(path, "properties without a schema are no longer kept: the server drops their values")
	case !equal(f, t):
		c.schema(path+"[*]", f, t, false)
	}
}

// served are the properties of a resource that the server itself knows.
var served = []string{"apiVersion", "kind", "metadata"}

// holdsObjects reports whether a schema takes objects, so that pruning matters.
func holdsObjects(n node) bool {
	types := typesOf(n)
	return types == nil || slices.Contains(types, "object")
}

// property returns the schema of a property that is named; nil: it is not.
func property(n node, name string) node { return object(object(n["properties"])[name]) }

// member returns the schema that a property has; nil: its value is dropped.
func member(n node, name string) node {
	if p := property(n, name); p != nil {
		return p
	}
	if slices.Contains(served, name) && is(n, "x-kubernetes-embedded-resource") {
		return anything()
	}
	return others(n)
}

// others returns the schema of properties that are not named; nil: they are dropped.
func others(n node) node {
	switch values := n["additionalProperties"].(type) {
	case node:
		return values
	case bool:
		if values {
			return anything()
		}
	}
	if is(n, "x-kubernetes-preserve-unknown-fields") {
		return anything()
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return fmt.Sprintf("%q", s)
}

// names returns a list of names as a set.
func names(list any) map[string]bool {
	out := map[string]bool{}
	all, _ := list.([]any)
	for _, name := range all {
		out[text(name)] = true
	}
	return out
}

func sameItems(a, b any) bool { return maps.Equal(names(a), names(b)) }

// without returns the values of a that are not in b.
func without(a, b []any) []any {
	return slices.DeleteFunc(slices.Clone(a), func(v any) bool {
		return slices.ContainsFunc(b, func(w any) bool { return equal(v, w) })
	})
}

func each(list any, f func(node)) {
	all, _ := list.([]any)
	for _, one := range all {
		if n := object(one); n != nil {
			f(n)
		}
	}
}

func object(v any) node { n, _ := v.(node); return n }

func text(v any) string { s, _ := v.(string); return s }

func is(n node, keyword string) bool { b, _ := n[keyword].(bool); return b }

// number returns the exact value of a number, since integers above 1<<53 are not all a
// float64; nil: v is not a number.
func number(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	case int:
		return new(big.Rat).SetInt64(int64(v))
	}
	return nil
}

// compareNames orders changes by their path.
func compareNames(a, b Narrowing) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Change, b.Change))
}
