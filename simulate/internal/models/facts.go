// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package models

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// factTable has the facts about built-in kinds that neither Go types nor the type table
// have, one per line:
//
//	enum TYPE VALUE|VALUE...   the values of a text
//	optional TYPE FIELD...     written when empty, and not required all the same
//	required TYPE FIELD...     the other way round
//
// The names of types omit the prefix of model names.
//
//go:embed facts.txt
var factTable string

const modelPrefix = "io.k8s.api."

// generatedSchemas are the schemas that come with the Go types of CRDs: those of CRDs and
// of the metadata of all objects.
var generatedSchemas = sync.OnceValue(func() spec.Definitions {
	out := spec.Definitions{}
	for name, definition := range openapi.GetOpenAPIDefinitions(func(model string) spec.Ref { return spec.MustCreateRef(RefPrefix + model) }) {
		if !strings.HasPrefix(name, modelPrefix) {
			out[name] = definition.Schema
		}
	}
	return out
})

// typeFacts are the facts about types that reflection does not have.
type typeFacts struct {
	merge              *smd.Schema // how lists and maps are merged, and defaults
	enums              map[string][]string
	optional, required map[string][]string // fields
}

var BuiltinFacts = sync.OnceValue(func() typeFacts {
	f := typeFacts{enums: map[string][]string{}, optional: map[string][]string{}, required: map[string][]string{}}
	for line := range strings.Lines(factTable) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		model, values, _ := strings.Cut(rest, " ")
		switch model = modelPrefix + model; word {
		case "enum":
			f.enums[model] = strings.Split(values, "|")
		case "optional":
			f.optional[model] = strings.Fields(values)
		case "required":
			f.required[model] = strings.Fields(values)
		}
	}
	f.merge = &BuiltinParser().Schema
	return f
})

// enum returns the values of a string type.
func (f typeFacts) enum(t reflect.Type) []string {
	group, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/")
	if !ok {
		return nil
	}
	return f.enums[modelPrefix+strings.ReplaceAll(group, "/", ".")+"."+t.Name()]
}

// demands reports whether a field is required. omitted means that it is not encoded when
// empty.
func (f typeFacts) demands(model, field string, omitted bool) bool {
	if omitted {
		return slices.Contains(f.required[model], field)
	}
	return !slices.Contains(f.optional[model], field)
}

func (f typeFacts) merged(model string) *smd.Map {
	def, ok := f.merge.FindNamedType(model)
	if !ok {
		return nil
	}
	return def.Map
}

// guess adds to a field what holds for most fields: lists are atomic, except those of a
// kind's objects, and a field that is encoded when empty defaults to the empty value.
func (f typeFacts) guess(property *spec.Schema, name string, t reflect.Type, omitted bool) {
	switch {
	case t.Kind() == reflect.Slice && name != "items" && property.Items != nil:
		property.AddExtension("x-kubernetes-list-type", "atomic")
	case t.Kind() == reflect.Struct && property.Ref.String() != "" && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		property.Default = map[string]any{}
	case omitted:
	case t.Kind() == reflect.Bool, t.Kind() == reflect.String, t.Kind() == reflect.Int32, t.Kind() == reflect.Int64:
		property.Default = reflect.Zero(t).Interface()
	}
}

// describe adds the merge rules and the default to a field of a model.
func (f typeFacts) describe(property *spec.Schema, model, name string, t reflect.Type, omitted bool) {
	list := f.merged(model)
	if list == nil {
		f.guess(property, name, t, omitted)
		return
	}
	field, ok := list.FindField(name)
	if !ok {
		return
	}
	if field.Default != nil {
		property.Default = field.Default
	}
	switch inline := field.Type.Inlined; {
	case inline.List != nil && inline.List.ElementRelationship == smd.Atomic:
		property.AddExtension("x-kubernetes-list-type", "atomic")
	case inline.List != nil && len(inline.List.Keys) > 0:
		property.AddExtension("x-kubernetes-list-type", "map")
		property.AddExtension("x-kubernetes-list-map-keys", inline.List.Keys)
	case inline.List != nil:
		property.AddExtension("x-kubernetes-list-type", "set")
	case inline.Map != nil && inline.Map.ElementRelationship == smd.Atomic:
		property.AddExtension("x-kubernetes-map-type", "atomic")
	case field.Type.ElementRelationship != nil:
		property.AddExtension("x-kubernetes-map-type", "granular")
	}
}

// finish adds what describes a model as a whole.
func (f typeFacts) finish(schema *spec.Schema, model string) {
	list := f.merged(model)
	if list == nil {
		return
	}
	if list.ElementRelationship == smd.Atomic {
		schema.AddExtension("x-kubernetes-map-type", "atomic")
	}
	var unions []any
	for _, u := range list.Unions {
		fields := map[string]any{}
		for _, field := range u.Fields {
			fields[field.FieldName] = field.DiscriminatorValue
		}
		union := map[string]any{"fields-to-discriminateBy": fields}
		if u.Discriminator != nil {
			union["discriminator"] = *u.Discriminator
		}
		unions = append(unions, union)
	}
	if unions != nil {
		schema.AddExtension("x-kubernetes-unions", unions)
	}
}
