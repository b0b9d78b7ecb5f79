// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// definitionSchema is the schema of CRDs: their definitions must be valid.
type definitionSchema struct{ builtinSchema }

func (s definitionSchema) Validate(subresource string, fields, old map[string]any, errs field.ErrorList) field.ErrorList {
	crd, err := InternalDefinition(fields)
	if err != nil {
		return append(errs, field.InternalError(nil, err))
	}
	if subresource == "status" {
		return append(errs, crdrules.WellNamed(&crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))...)
	}
	rules := &crdrules.Rules{CRD: crd}
	if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; old == nil && crd.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.Name, `must be spec.names.plural+"."+spec.group`))
	}
	if old != nil {
		if rules.Old, err = InternalDefinition(old); err != nil {
			return append(errs, field.InternalError(nil, err))
		}
	}
	return append(errs, rules.Validate()...)
}

// InternalDefinition converts a CRD to the internal form that a real server validates, in
// which what all versions share occurs once.
func InternalDefinition(fields map[string]any) (*apiextensions.CustomResourceDefinition, error) {
	crd, err := object.TypedOf[apiextensionsv1.CustomResourceDefinition](&object.Object{Fields: jsontree.Unmanaged(fields)})
	if err != nil {
		return nil, err
	}
	out := &apiextensions.CustomResourceDefinition{}
	return out, models.Scheme().Convert(crd, out, nil)
}

// TypeConverter reads CRDs by their own schema: they have no apply configuration.
func (definitionSchema) TypeConverter() managedfields.TypeConverter { return definitionConverter() }

var definitionConverter = sync.OnceValue(func() managedfields.TypeConverter { return models.ConverterOf(nil) })
