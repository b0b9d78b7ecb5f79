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

// factTable is what neither Go types nor the table of types say of built-in
// kinds, one fact a line:
//
//	enum TYPE VALUE|VALUE...   the values of a text
//	optional TYPE FIELD...     written when empty, and not required all the same
//	required TYPE FIELD...     the other way round
//
// Types are named as models are, without their beginning.
//
//go:embed facts.txt
var factTable string

const modelPrefix = "io.k8s.api."

// generatedSchemas are those that come with the Go types of CRDs: of these and
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

// typeFacts say of types what reflection does not.
type typeFacts struct {
	merge              *smd.Schema // which lists and maps are merged, and defaults
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

// enum is the values of a type of texts, by the rules for models' names.
func (f typeFacts) enum(t reflect.Type) []string {
	group, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/")
	if !ok {
		return nil
	}
	return f.enums[modelPrefix+strings.ReplaceAll(group, "/", ".")+"."+t.Name()]
}

// demands reports whether a field has to be there. omitted: it is not written
// when it is empty.
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

// guess adds to a field what holds for most of them: lists are replaced as a
// whole, but those of a kind's objects, and what is written when empty has the
// empty value as its default.
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

// describe adds to a field of a model how it is merged and its default.
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

// finish adds what is to be said of a model as a whole.
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
