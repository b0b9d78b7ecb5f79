// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"go/types"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// Bounds that controller-tools omits, so that a server accepts nothing that the Go type
// cannot hold.

// boundQuantities bounds the quantities of a schema.
func boundQuantities(s *apiextensionsv1.JSONSchemaProps) {
	if s.Pattern == decodelimit.AnyQuantity {
		s.Pattern = decodelimit.BoundQuantity
		if s.MaxLength == nil {
			s.MaxLength = new(int64(decodelimit.LongestQuantity))
		}
	}
	eachBelow(s, boundQuantities)
}

// eachBelow calls f with each schema directly below s.
func eachBelow(s *apiextensionsv1.JSONSchemaProps, f func(*apiextensionsv1.JSONSchemaProps)) {
	for name, p := range s.Properties {
		f(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		f(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		f(s.AdditionalProperties.Schema)
	}
	for i := range s.AllOf {
		f(&s.AllOf[i])
	}
}

// integers has the range of each integer type, and the format that contains it.
var integers = map[types.BasicKind]struct {
	format   string
	min, max float64 // both 0: those of the format
}{
	types.Int:    {format: "int64"},
	types.Int8:   {"int32", -1 << 7, 1<<7 - 1},
	types.Int16:  {"int32", -1 << 15, 1<<15 - 1},
	types.Int32:  {format: "int32"},
	types.Int64:  {format: "int64"},
	types.Uint:   {"int64", 0, mostInt64},
	types.Uint8:  {"int32", 0, 1<<8 - 1},
	types.Uint16: {"int32", 0, 1<<16 - 1},
	types.Uint32: {"int64", 0, 1<<32 - 1},
	types.Uint64: {"int64", 0, mostInt64},
}

// mostInt64 is as a float64 above the largest int64, so it is not written: the format
// bounds the value. Servers keep larger numbers as floats, without their last digits.
const mostInt64 = 1 << 63

// boundIntegers bounds the integers in a schema of values of t. inside are the types that
// contain t.
func boundIntegers(s *apiextensionsv1.JSONSchemaProps, t types.Type, inside []types.Type) {
	for i := range s.AllOf {
		boundIntegers(&s.AllOf[i], t, inside)
	}
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		for _, outer := range inside {
			if outer == t {
				return
			}
		}
		if inside = append(inside, t); encodes(named) {
			return
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		boundIntegers(s, u.Elem(), inside)
	case *types.Slice:
		boundItems(s, u.Elem(), inside)
	case *types.Array:
		boundItems(s, u.Elem(), inside)
	case *types.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			boundIntegers(s.AdditionalProperties.Schema, u.Elem(), inside)
		}
	case *types.Struct:
		boundFields(s, u, inside)
	case *types.Basic:
		boundInteger(s, u.Kind())
	}
}

func boundItems(s *apiextensionsv1.JSONSchemaProps, elem types.Type, inside []types.Type) {
	if s.Items != nil && s.Items.Schema != nil {
		boundIntegers(s.Items.Schema, elem, inside)
	}
}

func boundFields(s *apiextensionsv1.JSONSchemaProps, of *types.Struct, inside []types.Type) {
	for i := range of.NumFields() {
		tag := reflect.StructTag(of.Tag(i)).Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if name == "" && of.Field(i).Embedded() {
			boundIntegers(s, of.Field(i).Type(), inside)
			continue
		}
		if p, ok := s.Properties[name]; ok {
			boundIntegers(&p, of.Field(i).Type(), inside)
			s.Properties[name] = p
		}
	}
}

// encodes reports whether a type encodes itself, so that its schema is not that of its
// underlying type.
func encodes(t *types.Named) bool {
	methods := types.NewMethodSet(types.NewPointer(t))
	return methods.Lookup(nil, "MarshalJSON") != nil || methods.Lookup(nil, "MarshalText") != nil
}

// boundInteger bounds one integer. Narrower bounds of markers stay.
func boundInteger(s *apiextensionsv1.JSONSchemaProps, kind types.BasicKind) {
	is, known := integers[kind]
	if !known || s.Type != "integer" {
		return
	}
	if s.Format == "" || kind == types.Uint32 && s.Format == "int32" {
		s.Format = is.format
	}
	if is.min == is.max {
		return
	}
	if s.Minimum == nil || *s.Minimum < is.min {
		s.Minimum, s.ExclusiveMinimum = new(is.min), false
	}
	if is.max < mostInt64 && (s.Maximum == nil || *s.Maximum > is.max) {
		s.Maximum, s.ExclusiveMaximum = new(is.max), false
	}
}
