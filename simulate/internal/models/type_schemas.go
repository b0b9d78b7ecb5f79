// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// RefPrefix begins references to schemas in documents of v2.
const RefPrefix = "#/definitions/"

// modelled is a Go type whose schema has its own name, as do all types of the Kubernetes
// APIs that are JSON objects.
type modelled interface{ OpenAPIModelName() string }

// TypeSchemas collects the schemas of Go types by the names of their models, in the form of
// v2.
type TypeSchemas struct {
	Facts typeFacts
	Out   spec.Definitions
}

// Add adds the schema of a type and of the types it consists of.
func (s TypeSchemas) Add(t reflect.Type) {
	name := ModelName(t)
	if name == "" {
		return
	}
	if _, done := s.Out[name]; done {
		return
	}
	if known, ok := generatedSchemas()[name]; ok {
		s.Out[name] = known
		s.addFieldTypes(t)
		return
	}
	schema := spec.Schema{}
	schema.Description = DocOf(t)[""]
	s.Out[name] = schema // ends the recursion of recursive types
	if of, ok := reflect.Zero(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		schema.Type, schema.Format = of.OpenAPISchemaType(), of.OpenAPISchemaFormat()
		if of, ok := of.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
			schema.Type = nil
			for _, name := range of.OpenAPIV3OneOfTypes() {
				schema.OneOf = append(schema.OneOf, *new(spec.Schema).Typed(name, ""))
			}
		}
		s.Out[name] = schema
		return
	}
	schema.Type = spec.StringOrArray{"object"}
	schema.Properties = map[string]spec.Schema{}
	s.properties(&schema, name, t)
	s.Facts.finish(&schema, name)
	s.Out[name] = schema
}

// addFieldTypes adds the types of which a type with a known schema consists.
func (s TypeSchemas) addFieldTypes(t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			s.Add(elementOf(f.Type))
		}
	}
}

// elementOf returns the element type of pointers, lists and maps.
func elementOf(t reflect.Type) reflect.Type {
	for ModelName(t) == "" && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		t = t.Elem()
	}
	return t
}

// properties adds the fields of a struct and of its inlined structs.
func (s TypeSchemas) properties(to *spec.Schema, model string, t reflect.Type) {
	docs := DocOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.properties(to, model, f.Type)
			continue
		case name == "":
			name = f.Name
		}
		property := s.property(f.Type)
		property.Description = s.describeValues(docs[name], f.Type)
		if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
			property.AddExtension("x-kubernetes-patch-strategy", strategy)
		}
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			property.AddExtension("x-kubernetes-patch-merge-key", key)
		}
		omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if s.Facts.demands(model, name, omitted) {
			to.Required = append(to.Required, name)
		}
		s.Facts.describe(&property, model, name, f.Type, omitted)
		to.Properties[name] = property
	}
}

// property returns the schema of a field of a type.
func (s TypeSchemas) property(t reflect.Type) spec.Schema {
	if name := ModelName(t); name != "" {
		s.Add(t)
		return *spec.RefSchema(RefPrefix + name)
	}
	var out spec.Schema
	switch t.Kind() {
	case reflect.Pointer:
		return s.property(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		item := s.property(t.Elem())
		return *spec.ArrayProperty(&item)
	case reflect.Map:
		value := s.property(t.Elem())
		return *spec.MapProperty(&value)
	case reflect.String:
		out.Typed("string", "")
		for _, value := range s.Facts.enum(t) {
			out.Enum = append(out.Enum, value)
		}
	case reflect.Bool:
		out.Typed("boolean", "")
	case reflect.Int32, reflect.Uint32, reflect.Int, reflect.Int8, reflect.Int16, reflect.Uint16, reflect.Uint8:
		out.Typed("integer", "int32")
	case reflect.Int64, reflect.Uint64:
		out.Typed("integer", "int64")
	case reflect.Float64, reflect.Float32:
		out.Typed("number", "double")
	case reflect.Struct:
		out.Typed("object", "")
	}
	return out
}

// describeValues adds the possible values to the description of a field.
func (s TypeSchemas) describeValues(doc string, t reflect.Type) string {
	values := s.Facts.enum(elementOf(t))
	if values == nil {
		return doc
	}
	var text strings.Builder
	text.WriteString(doc + "\n\nPossible enum values:")
	for _, value := range values {
		fmt.Fprintf(&text, "\n - `%q`", value)
	}
	return text.String()
}

// ModelName returns the name of a type's schema; empty if it has none.
func ModelName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return ""
	}
	if of, ok := reflect.Zero(t).Interface().(modelled); ok {
		return of.OpenAPIModelName()
	}
	return ""
}

// DocOf returns the documentation of a type and its fields.
func DocOf(t reflect.Type) map[string]string {
	if of, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return of.SwaggerDoc()
	}
	return nil
}
