// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

// builtinSchema is the schema of a kind with a Go type: the type has the fields, and code
// has the defaults and the rules.
type builtinSchema struct{ kind *Kind }

// Prune drops what the Go type does not have and adds what it always encodes. It returns no
// names: a body is decoded through the Go type, which finds unknown fields.
func (b builtinSchema) Prune(fields map[string]any) ([]string, error) {
	b.through(fields, func(runtime.Object) {})
	return nil, nil
}

func (b builtinSchema) SetDefaults(fields map[string]any) { b.through(fields, defaults.Set) }

// through decodes fields into the Go type, calls change, and encodes the result. Fields
// that the type cannot hold stay unchanged.
func (b builtinSchema) through(fields map[string]any, change func(runtime.Object)) {
	typed, err := b.typed(fields)
	if err != nil {
		return
	}
	change(typed)
	obj, err := ObjectOfTyped(b.kind, typed)
	if err != nil {
		return
	}
	clear(fields)
	maps.Copy(fields, obj.Fields)
}

func (b builtinSchema) typed(fields map[string]any) (runtime.Object, error) {
	typed, err := models.Scheme().New(b.kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed)
}

func (b builtinSchema) Validate(subresource string, fields, old map[string]any, found field.ErrorList) field.ErrorList {
	rule := validation.RuleOf(b.kind.GroupResource().String())
	if subresource != "" || rule == nil {
		return found
	}
	typed, err := b.typed(jsontree.Unmanaged(fields))
	if err != nil {
		return append(found, field.InternalError(nil, err))
	}
	if old == nil {
		return append(found, rule(typed, nil)...)
	}
	was, err := b.typed(jsontree.Unmanaged(old))
	if err != nil {
		return append(found, field.InternalError(nil, err))
	}
	return append(found, rule(typed, was)...)
}

// TypeConverter reads objects by the built-in type table.
func (b builtinSchema) TypeConverter() managedfields.TypeConverter { return goConverter() }

// goConverter is shared by all built-in kinds and must not be modified.
var goConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return managedfields.NewSchemeTypeConverter(models.Scheme(), models.BuiltinParser())
})

// OpenAPI returns nil: the schema of a built-in kind is derived from its Go type.
func (builtinSchema) OpenAPI() *spec.Schema { return nil }

// deducedSchema is the schema of a kind without an apply configuration, as Scale: ownership
// follows from the fields that are present.
type deducedSchema struct{ builtinSchema }

// Deduced returns the schema of a kind with a Go type and without an apply configuration.
func Deduced(k *Kind) object.Schema { return deducedSchema{builtinSchema{k}} }

func (deducedSchema) TypeConverter() managedfields.TypeConverter { return nil }
