// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// customSchema is the compiled schema of one version of a CRD's kind. It is immutable, so
// servers can share it.
type customSchema struct {
	structural    *structuralschema.Structural
	whole, status apiservervalidation.SchemaValidator // status is nil when it has no schema
	rules         *cel.Validator                      // nil: none
	scale         *apiextensions.CustomResourceSubresourceScale
	document      *spec.Schema
	types         func() managedfields.TypeConverter // of all versions
	// managers are nil with a conversion webhook, which each server calls in its own way.
	managers, scaleManagers *ownership.FieldManagers
}

// Prune drops fields that the schema does not have, nulls that it does not allow, and what
// does not belong into the metadata of embedded objects. It leaves the fields that every
// object has at its root.
func (s *customSchema) Prune(fields map[string]any) (unknown []string, err error) {
	rooted := map[string]any{}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		jsontree.KeepField(fields, rooted, name)
	}
	unknown = pruning.PruneWithOptions(fields, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(fields, s.structural)
	problem, dropped := objectmeta.CoerceWithOptions(nil, fields, s.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if problem != nil {
		return nil, problem
	}
	for name := range rooted {
		fields[name] = rooted[name]
	}
	return append(unknown, dropped...), nil
}

func (s *customSchema) SetDefaults(fields map[string]any) { defaulting.Default(fields, s.structural) }

func (s *customSchema) Validate(subresource string, fields, old map[string]any, errs field.ErrorList) field.ErrorList {
	ctx := context.Background() // the cost of CEL is bounded
	var ratchet []cel.Option
	switch {
	case old == nil:
		errs = append(errs, apiservervalidation.ValidateCustomResource(nil, fields, s.whole)...)
		errs = append(append(errs, s.scaledSpec(fields)...), s.scaledStatus(fields)...)
		errs = append(errs, objectmeta.Validate(ctx, nil, fields, s.structural, false)...)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, fields)...)
	default:
		// Unchanged fields that were invalid before may stay.
		pair := common.NewCorrelatedObject(fields, old, &model.Structural{Structural: s.structural})
		ratchet = append(ratchet, cel.WithRatcheting(pair))
		if subresource == "status" {
			errs = append(errs, s.changedStatus(pair, fields, old)...)
		} else {
			errs = append(errs, apiservervalidation.ValidateCustomResourceUpdate(nil, fields, old, s.whole, apiservervalidation.WithRatcheting(pair))...)
			errs = append(append(errs, s.scaledSpec(fields)...), s.scaledStatus(fields)...)
			errs = append(errs, objectmeta.Validate(ctx, nil, fields, s.structural, false)...)
		}
		if before := listtype.ValidateListSetsAndMaps(nil, s.structural, old); len(before) == 0 {
			errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, fields)...)
		}
	}
	if s.rules == nil {
		return errs
	}
	if blocksRules(errs) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	var before any // a nil map would count as an old object
	if old != nil {
		before = old
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, fields, before, celconfig.RuntimeCELCostBudget, ratchet...)
	return append(errs, broken...)
}

// changedStatus validates an update of the status alone.
func (s *customSchema) changedStatus(pair *common.CorrelatedObject, fields, old map[string]any) (errs field.ErrorList) {
	if status, has := fields["status"]; has && s.status != nil {
		errs = apiservervalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], s.status, apiservervalidation.WithRatcheting(pair.Key("status")))
	}
	return append(errs, s.scaledStatus(fields)...)
}

// blocksRules reports whether an object is too invalid for CEL.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// scaledSpec validates the desired number of replicas.
func (s *customSchema) scaledSpec(fields map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	return replicas(fields, s.scale.SpecReplicasPath)
}

// scaledStatus validates the current number of replicas and the selector.
func (s *customSchema) scaledStatus(fields map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	errs := replicas(fields, s.scale.StatusReplicasPath)
	if path := s.scale.LabelSelectorPath; path != nil {
		if selector, _, err := unstructured.NestedString(fields, dotted(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func replicas(fields map[string]any, path string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(fields, dotted(path)...)
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case n < 0:
		problem = "should be a non-negative integer"
	case n > math.MaxInt32:
		problem = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), n, problem)}
}

// dotted splits a path such as ".spec.replicas" into names.
func dotted(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (s *customSchema) TypeConverter() managedfields.TypeConverter { return s.types() }

func (s *customSchema) OpenAPI() *spec.Schema { return s.document }
