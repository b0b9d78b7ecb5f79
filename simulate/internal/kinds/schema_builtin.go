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

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

// builtinSchema is that of a kind that has a Go type: the type says which
// fields there are, and code what their defaults and their rules are.
type builtinSchema struct{ kind *Kind }

// Prune drops what the Go type does not have, and adds what it always shows. It
// names nothing: a body is read through the Go type, which finds such fields.
func (b builtinSchema) Prune(fields map[string]any) ([]string, error) {
	b.through(fields, func(runtime.Object) {})
	return nil, nil
}

func (b builtinSchema) SetDefaults(fields map[string]any) { b.through(fields, defaults.Set) }

// through reads fields into the Go type, has it changed, and writes it back.
// Fields that the type cannot hold stay as they are.
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
	typed, err := gotypes.Scheme().New(b.kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed)
}

func (b builtinSchema) Validate(subresource string, fields, old map[string]any, found field.ErrorList) field.ErrorList {
	if subresource != "" || !validation.HasRules(b.kind.GroupResource().String()) {
		return found
	}
	typed, err := b.typed(jsonvalue.Unmanaged(fields))
	if err != nil {
		return append(found, field.InternalError(nil, err))
	}
	if old == nil {
		return append(found, validation.Validate(typed, nil)...)
	}
	was, err := b.typed(jsonvalue.Unmanaged(old))
	if err != nil {
		return append(found, field.InternalError(nil, err))
	}
	return append(found, validation.Validate(typed, was)...)
}

// TypeConverter reads objects by the table of types.
func (b builtinSchema) TypeConverter() managedfields.TypeConverter { return goConverter() }

// goConverter is the one of all built-in kinds. Nobody changes it.
var goConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return managedfields.NewSchemeTypeConverter(gotypes.Scheme(), models.BuiltinParser())
})

// OpenAPI is nil: what is shown of built-in kinds is made of their Go types.
func (builtinSchema) OpenAPI() *spec.Schema { return nil }

// deducedSchema is that of a kind that no apply configuration has, as Scale:
// who owns what of it is told by the fields that are there.
type deducedSchema struct{ builtinSchema }

// Deduced is the schema of a kind with a Go type that no apply configuration has.
func Deduced(k *Kind) object.Schema { return deducedSchema{builtinSchema{k}} }

func (deducedSchema) TypeConverter() managedfields.TypeConverter { return nil }
