// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall_test

import (
	"fmt"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
)

// parse returns the object of a YAML document, with the numbers of JSON.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

// widget returns a CustomResourceDefinition whose version v1 has the schema of a spec.
func widget(t testing.TB, spec string) map[string]any {
	t.Helper()
	crd := parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {}}}
`)
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	schema["properties"].(map[string]any)["spec"] = parse(t, spec)
	return crd
}

func texts(all []crdinstall.Narrowing) string {
	var lines []string
	for _, n := range all {
		lines = append(lines, n.String())
	}
	return strings.Join(lines, "\n")
}

func TestNarrowings_OfASchema_O7(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           string // the only change, without "v1: .spec"; empty: none
	}{
		{"nothing", `{type: object, properties: {a: {type: string, maxLength: 3}}}`, `{type: object, properties: {a: {type: string, maxLength: 3}}}`, ""},
		{"a description", `{type: object, description: x}`, `{type: object, title: t, description: y, example: {}}`, ""},
		{"a new property", `{type: object}`, `{type: object, properties: {a: {type: string, minLength: 1}}}`, ""},
		{"a removed property", `{type: object, properties: {a: {type: string}}}`, `{type: object}`, `.a: the property is removed: the server drops its values`},
		{"a removed property whose values are kept", `{type: object, properties: {a: {type: string}}}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, ""},
		{"a removed property of a list's items", `{type: array, items: {type: object, properties: {a: {type: string}}}}`, `{type: array, items: {type: object}}`, `[].a: the property is removed: the server drops its values`},
		{"a new required property", `{type: object, properties: {a: {type: string}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, `.a: it becomes required, and has no default`},
		{"a new required property with a default", `{type: object}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, ""},
		{"a required property loses its default", `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, `.a: it is required, and loses its default`},
		{"an optional property loses its default", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string}}}`, ""},
		{"no longer required", `{type: object, required: [a], properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, ""},

		{"another type", `{type: integer}`, `{type: string}`, `: the type changes from integer to string`},
		{"another type hides the rest", `{type: object, properties: {a: {type: string}}}`, `{type: string, pattern: x}`, `: the type changes from object to string`},
		{"integers become numbers", `{type: integer}`, `{type: number}`, ""},
		{"numbers become integers", `{type: number}`, `{type: integer}`, `: the type changes from number to integer`},
		{"a type where any was", `{x-kubernetes-preserve-unknown-fields: true}`, `{type: object}`, `: the type changes from any to object`},
		{"any type", `{type: string}`, `{x-kubernetes-preserve-unknown-fields: true}`, ""},
		{"integers become integers or strings", `{type: integer}`, `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`, ""},
		{"integers or strings become strings", `{x-kubernetes-int-or-string: true}`, `{type: string}`, `: the type changes from integer or string to string`},
		{"null", `{type: string, nullable: true}`, `{type: string}`, `: null is no longer allowed`},
		{"null is new", `{type: string}`, `{type: string, nullable: true}`, ""},

		{"a higher minimum", `{type: integer, minimum: 1}`, `{type: integer, minimum: 2}`, `: minimum changes from 1 to 2`},
		{"a lower minimum", `{type: integer, minimum: 2}`, `{type: integer, minimum: 1}`, ""},
		{"a new minimum", `{type: integer}`, `{type: integer, minimum: 0}`, `: minimum changes from none to 0`},
		{"an exclusive minimum", `{type: integer, minimum: 0}`, `{type: integer, minimum: 0, exclusiveMinimum: true}`, `: minimum changes from 0 to 0 (exclusive)`},
		{"a lower maximum", `{type: number, maximum: 1.5}`, `{type: number, maximum: 1.25}`, `: maximum changes from 1.5 to 1.25`},
		{"an exclusive maximum", `{type: integer, maximum: 5}`, `{type: integer, maximum: 5, exclusiveMaximum: true}`, `: maximum changes from 5 to 5 (exclusive)`},
		{"no maximum", `{type: integer, maximum: 5}`, `{type: integer}`, ""},
		{"a multiple", `{type: integer}`, `{type: integer, multipleOf: 2}`, `: multipleOf changes from none to 2`},
		{"a divisor", `{type: integer, multipleOf: 4}`, `{type: integer, multipleOf: 2}`, ""},
		{"a shorter text", `{type: string, maxLength: 5}`, `{type: string, maxLength: 4}`, `: maxLength changes from 5 to 4`},
		{"a longer least text", `{type: string}`, `{type: string, minLength: 1}`, `: minLength changes from none to 1`},
		{"a least length of nothing", `{type: string}`, `{type: string, minLength: 0}`, ""},
		{"fewer items", `{type: array, items: {type: string}}`, `{type: array, maxItems: 2, items: {type: string}}`, `: maxItems changes from none to 2`},
		{"more properties", `{type: object, minProperties: 1}`, `{type: object, minProperties: 2}`, `: minProperties changes from 1 to 2`},

		{"a smaller enum", `{type: string, enum: [a, b, c]}`, `{type: string, enum: [c, a]}`, `: the enum loses ["b"]`},
		{"a larger enum", `{type: string, enum: [a]}`, `{type: string, enum: [b, a]}`, ""},
		{"a new enum", `{type: string}`, `{type: string, enum: [a]}`, `: only ["a"] are allowed; any value was`},
		{"no enum", `{type: string, enum: [a]}`, `{type: string}`, ""},
		{"another pattern", `{type: string, pattern: a+}`, `{type: string, pattern: a*}`, `: the pattern changes from "a+" to "a*", which may refuse values`},
		{"no pattern", `{type: string, pattern: a+}`, `{type: string}`, ""},
		{"a format", `{type: string}`, `{type: string, format: date-time}`, `: the format changes from none to "date-time", which may refuse values`},
		{"a wider format", `{type: integer, format: int32}`, `{type: integer, format: int64}`, ""},
		{"a narrower format", `{type: integer, format: int64}`, `{type: integer, format: int32}`, `: the format changes from "int64" to "int32", which may refuse values`},

		{"a map has other values", `{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string, maxLength: 1}}`, `[*]: maxLength changes from none to 1`},
		{"a map becomes fixed", `{type: object, additionalProperties: {type: string}}`, `{type: object, properties: {a: {type: string}}}`, `: properties without a schema are no longer kept: the server drops their values`},
		{"properties become a map", `{type: object, properties: {a: {type: string}}}`, `{type: object, additionalProperties: {type: string}}`, ""},
		{"properties become a map of others", `{type: object, properties: {a: {type: string}}}`, `{type: object, additionalProperties: {type: integer}}`, `.a: the type changes from string to integer`},
		{"unknown fields are dropped", `{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object}`, `: properties without a schema are no longer kept: the server drops their values`},
		{"an unknown field gets a schema", `{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`, `.a: the type changes from any to string`},
		{"an embedded object", `{type: object}`, `{type: object, x-kubernetes-embedded-resource: true}`, `: it must be a whole object, with apiVersion and kind`},
		{"an embedded object keeps its schema", `{type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: string}}}`, `{type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: string}, kind: {type: string}}}`, ""},

		{"a set", `{type: array, items: {type: string}}`, `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, `: the list type changes from none to "set", whose items must be unique`},
		{"an atomic list", `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, `{type: array, x-kubernetes-list-type: atomic, items: {type: string}}`, ""},
		{"other keys", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object}}`, `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object}}`, `: the keys of the list change from ["a","b"] to ["a"]`},
		{"a rule", `{type: string, x-kubernetes-validations: [{rule: self != ''}]}`, `{type: string, x-kubernetes-validations: [{rule: self != '', message: no}, {rule: self != 'a'}]}`, `: there is a new rule: self != 'a'`},
		{"no rule", `{type: string, x-kubernetes-validations: [{rule: self != ''}]}`, `{type: string}`, ""},
		{"one more alternative", `{type: string, anyOf: [{maxLength: 1}]}`, `{type: string, anyOf: [{minLength: 3}, {maxLength: 1}]}`, ""},
		{"one alternative less", `{type: string, anyOf: [{minLength: 3}, {maxLength: 1}]}`, `{type: string, anyOf: [{maxLength: 1}]}`, `: anyOf changes, which may refuse values`},
		{"one condition less", `{type: string, allOf: [{minLength: 3}, {maxLength: 1}]}`, `{type: string, allOf: [{maxLength: 1}]}`, ""},
		{"one condition more", `{type: string, allOf: [{maxLength: 1}]}`, `{type: string, allOf: [{minLength: 3}, {maxLength: 1}]}`, `: allOf changes, which may refuse values`},
		{"exactly one of others", `{type: string, oneOf: [{maxLength: 1}]}`, `{type: string, oneOf: [{minLength: 3}, {maxLength: 1}]}`, `: oneOf changes, which may refuse values`},
		{"a keyword of the future", `{type: string}`, `{type: string, x-kubernetes-future: true}`, `: x-kubernetes-future changes from none to true, which may refuse values`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := texts(crdinstall.Narrowings(widget(t, c.from), widget(t, c.to)))
			want := c.want
			if want != "" {
				want = "v1: .spec" + want
			}
			if got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// The server itself keeps what identifies an object, with or without a schema.
func TestNarrowings_MetadataNeedsNoSchema_O7(t *testing.T) {
	from, to := widget(t, `{type: object}`), widget(t, `{type: object}`)
	set(t, from, parse(t, `{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}`))
	set(t, to, parse(t, `{type: object}`))
	if got := crdinstall.Narrowings(from, to); len(got) > 0 {
		t.Errorf("got %v, want nothing", got)
	}
	set(t, to, parse(t, `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}}}`))
	if got := texts(crdinstall.Narrowings(from, to)); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

// set replaces the schema of v1.
func set(t testing.TB, crd, schema map[string]any) {
	t.Helper()
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": schema}
}

func TestNarrowings_OfADefinition_O7(t *testing.T) {
	const version = `{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object}}%s}`
	v := func(name string, served, storage bool, more string) string {
		return fmt.Sprintf(version, name, served, storage, more)
	}
	crd := func(more string, versions ...string) string {
		return "{spec: {group: example.dev, scope: Namespaced, names: {kind: Widget, plural: widgets, shortNames: [wi]}, versions: [" +
			strings.Join(versions, ", ") + "]}" + more + "}"
	}
	v1, v2 := v("v1", true, true, ""), v("v2", true, true, "")
	for _, c := range []struct{ name, from, to, want string }{
		{"the same", crd("", v1), crd("", v1), ""},
		{"a new version", crd("", v1), crd("", v1, v("v2", true, false, "")), ""},
		{"another storage version", crd("", v1), crd("", v("v1", true, false, ""), v2), ""},
		{"a version that is served and stored", crd("", v1), crd("", v2), "v1: the version is removed, and status.storedVersions has it: objects may be stored in it"},
		{"a version that is served", crd("", v("v1", true, false, ""), v2), crd("", v2), "v1: the version is removed, and is served"},
		{"a version that is neither", crd("", v("v1", false, false, ""), v2), crd("", v2), ""},
		{"a version that was stored", crd(", status: {storedVersions: [v1, v2]}", v("v1", false, false, ""), v2), crd("", v2), "v1: the version is removed, and status.storedVersions has it: objects may be stored in it"},
		{"a stored version that both lack", crd(", status: {storedVersions: [v0, v2]}", v2), crd("", v2), "v0: the version is missing, and status.storedVersions has it: objects may be stored in it"},
		{"no longer served", crd("", v1, v("v2", true, false, "")), crd("", v1, v("v2", false, false, "")), "v2: the version is no longer served"},
		{"another scope", crd("", v1), strings.Replace(crd("", v1), "Namespaced", "Cluster", 1), `spec.scope: it changes from "Namespaced" to "Cluster"`},
		{"another kind", crd("", v1), strings.Replace(crd("", v1), "Widget", "Gadget", 1), `spec.names.kind: it changes from "Widget" to "Gadget"`},
		{"another group", crd("", v1), strings.Replace(crd("", v1), "example.dev", "example.com", 1), `spec.group: it changes from "example.dev" to "example.com"`},
		{"a short name", crd("", v1), strings.Replace(crd("", v1), "[wi]", "[]", 1), `spec.names.shortNames: they lose ["wi"]`},
		{"a new subresource", crd("", v1), crd("", v("v1", true, true, ", subresources: {status: {}}")), ""},
		{"a subresource", crd("", v("v1", true, true, ", subresources: {status: {}}")), crd("", v1), "v1: the subresource status is removed"},
		{"the scale", crd("", v("v1", true, true, ", subresources: {scale: {specReplicasPath: .spec.a}}")), crd("", v1), "v1: the subresource scale is removed"},
		{"a path of the scale", crd("", v("v1", true, true, ", subresources: {scale: {specReplicasPath: .spec.a}}")), crd("", v("v1", true, true, ", subresources: {scale: {specReplicasPath: .spec.b}}")), `v1: specReplicasPath of the subresource scale changes from ".spec.a" to ".spec.b"`},
		{"a selectable field", crd("", v("v1", true, true, ", selectableFields: [{jsonPath: .spec.a}]")), crd("", v1), "v1: .spec.a: it can no longer be selected by"},
		{"a column", crd("", v("v1", true, true, ", additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]")), crd("", v1), ""},
		{"pruning", strings.Replace(crd("", v1), "scope:", "preserveUnknownFields: true, scope:", 1), crd("", v1), "spec.preserveUnknownFields: it changes to false: the server drops fields without a schema"},
		{"the conversion", strings.Replace(crd("", v1, v("v2", true, false, "")), "scope:", "conversion: {strategy: Webhook}, scope:", 1), crd("", v1, v("v2", true, false, "")), "spec.conversion: the webhook is removed: the server no longer converts fields between versions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := texts(crdinstall.Narrowings(parse(t, c.from), parse(t, c.to))); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// exactly parses a schema with exact integers, as those that a server and a program's
// manifest have.
func exactly(t testing.TB, spec string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Integers above 1<<53 that differ in their last digit are the same float64.
func TestNarrowings_LargeIntegersAreExact_O7(t *testing.T) {
	of := func(spec string) map[string]any {
		crd := widget(t, `{}`)
		version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"] = exactly(t, spec)
		return crd
	}
	for _, c := range []struct{ from, to, want string }{
		{`{type: integer, enum: [9007199254740993]}`, `{type: integer, enum: [9007199254740992]}`, "the enum loses [9007199254740993]"},
		{`{type: integer, enum: [9223372036854775807]}`, `{type: integer, enum: [9223372036854775806, 9223372036854775807]}`, ""},
		{`{type: integer, maximum: 9007199254740993}`, `{type: integer, maximum: 9007199254740992}`, "maximum changes from 9007199254740993 to 9007199254740992"},
		{`{type: integer, minimum: 9007199254740992}`, `{type: integer, minimum: 9007199254740993}`, "minimum changes from 9007199254740992 to 9007199254740993"},
		{`{type: integer, minimum: 9007199254740993}`, `{type: integer, minimum: 9007199254740992}`, ""},
		{`{type: integer, multipleOf: 9007199254740993}`, `{type: integer, multipleOf: 9007199254740992}`, "multipleOf changes from 9007199254740993 to 9007199254740992"},
		{`{type: integer, enum: [5]}`, `{type: integer, enum: [5.0]}`, ""},
	} {
		got := texts(crdinstall.Narrowings(of(c.from), of(c.to)))
		if want := "v1: .spec: " + c.want; got != want && (c.want != "" || got != "") {
			t.Errorf("from %s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
		d, err := crdinstall.Decide(of(c.from), of(c.to))
		if narrows := err != nil; narrows != (c.want != "") {
			t.Errorf("from %s to %s: decided %+v, %v", c.from, c.to, d, err)
		}
	}
}

// Without a conversion the server drops from objects what the version that it stores
// them in has no schema for.
func TestNarrowings_AnotherStorageVersionKeepsWhatIsStored_O7(t *testing.T) {
	const schema = `{type: object, properties: {a: {type: string}, list: {type: array, items: {type: object, properties: {b: {type: integer, maximum: 5}}}}}}`
	two := func(spec string, edit func(spec map[string]any)) map[string]any {
		crd := widget(t, schema)
		s := crd["spec"].(map[string]any)
		second := widget(t, spec)["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		second["name"] = "v2"
		first := s["versions"].([]any)[0].(map[string]any)
		first["storage"] = false
		s["versions"] = []any{first, second}
		if edit != nil {
			edit(s)
		}
		return crd
	}
	converts := func(spec map[string]any) {
		spec["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	v2 := "v2, stored instead of v1: "
	for _, c := range []struct {
		name string
		to   map[string]any
		want string
	}{
		{"the same schema", two(schema, nil), ""},
		{"a wider one", two(`{type: object, x-kubernetes-preserve-unknown-fields: true}`, nil), ""},
		{"one that refuses more, since what is stored is not judged", two(`{type: object, required: [a], properties: {a: {type: string}, list: {type: array, items: {type: object, properties: {b: {type: integer, maximum: 3}}}}}}`, nil), ""},
		{"a field is missing", two(`{type: object, properties: {list: {type: array, items: {type: object, properties: {b: {type: integer}}}}}}`, nil), v2 + ".spec.a: the property is removed: the server drops its values"},
		{"a field of an element is missing", two(`{type: object, properties: {a: {type: string}, list: {type: array, items: {type: object}}}}`, nil), v2 + ".spec.list[].b: the property is removed: the server drops its values"},
		{"a webhook converts", two(`{type: object}`, converts), ""},
		{"nothing is pruned", two(`{type: object}`, func(spec map[string]any) { spec["preserveUnknownFields"] = true }), ""},
	} {
		if got := texts(crdinstall.Narrowings(widget(t, schema), c.to)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The bounds that flyball crds gives quantities refuse none that a program could decode.
func TestNarrowings_BoundsOfQuantitiesAreNone_O7(t *testing.T) {
	of := func(pattern string, more string) map[string]any {
		return widget(t, fmt.Sprintf(`{x-kubernetes-int-or-string: true, pattern: %q%s}`, pattern, more))
	}
	bound := of(decodelimit.BoundQuantity, ", maxLength: 32")
	for _, c := range []struct {
		from, to map[string]any
		narrows  bool
	}{
		{of(decodelimit.AnyQuantity, ""), bound, false},
		{bound, bound, false},
		{of("^.*$", ""), bound, true},
		{of(decodelimit.AnyQuantity, ", maxLength: 64"), bound, true},
		{of(decodelimit.AnyQuantity, ""), of(decodelimit.BoundQuantity, ", maxLength: 3"), true},
		{of(decodelimit.AnyQuantity, ""), of("^1$", ", maxLength: 32"), true},
	} {
		if got := crdinstall.Narrowings(c.from, c.to); (len(got) > 0) != c.narrows {
			t.Errorf("from %v to %v: %v, want a narrowing: %t", c.from, c.to, got, c.narrows)
		}
	}
}
