// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// ruleScope is the CEL type of one place in a schema; nil if there is none.
type ruleScope struct {
	schema *structuralschema.Structural
	typ    func() *apiservercel.DeclType
	times  uint64 // how often the place occurs in an object, at most; 0: unbounded
}

func rootRules(s *structuralschema.Structural) *ruleScope {
	if s == nil {
		return nil
	}
	return &ruleScope{schema: s, typ: sync.OnceValue(func() *apiservercel.DeclType { return model.SchemaDeclType(s, true) }), times: 1}
}

func (r *ruleScope) property(s *apiextensions.JSONSchemaProps, name string) *ruleScope {
	if r == nil {
		return nil
	}
	property, ok := r.schema.Properties[name]
	if !ok {
		return nil
	}
	return r.inner(s, &property, func(of *apiservercel.DeclType) *apiservercel.DeclType {
		if escaped, ok := apiservercel.Escape(name); ok && of.Fields[escaped] != nil {
			return of.Fields[escaped].Type
		}
		return nil
	})
}

func (r *ruleScope) items(s *apiextensions.JSONSchemaProps) *ruleScope {
	if r == nil {
		return nil
	}
	return r.inner(s, r.schema.Items, elementType)
}

func (r *ruleScope) values(s *apiextensions.JSONSchemaProps) *ruleScope {
	if r == nil || r.schema.AdditionalProperties == nil {
		return nil
	}
	return r.inner(s, r.schema.AdditionalProperties.Structural, elementType)
}

func elementType(of *apiservercel.DeclType) *apiservercel.DeclType { return of.ElemType }

// inner returns the scope of s, a schema below that of r. Its type is part of the type of
// r, or is declared if r's type does not have it.
func (r *ruleScope) inner(s *apiextensions.JSONSchemaProps, schema *structuralschema.Structural, part func(*apiservercel.DeclType) *apiservercel.DeclType) *ruleScope {
	if schema == nil {
		return nil
	}
	typ := func() *apiservercel.DeclType {
		if of := r.typ(); of != nil {
			if typ := part(of); typ != nil {
				return typ
			}
		}
		return model.SchemaDeclType(schema, schema.XEmbeddedResource)
	}
	return &ruleScope{schema: schema, typ: sync.OnceValue(typ), times: times(r.times, mostElements(s))}
}

// mostElements returns how many items, properties or keys s can have at most; 0: unbounded.
func mostElements(s *apiextensions.JSONSchemaProps) uint64 {
	var most *int64
	switch {
	case s.Type == "object" && s.AdditionalProperties != nil:
		most = s.MaxProperties
	case s.Type == "array":
		most = s.MaxItems
	default:
		return 1
	}
	if most == nil {
		return 0
	}
	return uint64(max(*most, 0))
}

// times multiplies and saturates at the maximum.
func times(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// oldExpressions are the expressions that the CRD already had.
type oldExpressions map[string]bool

func expressionsOf(crd *apiextensions.CustomResourceDefinition) oldExpressions {
	all := oldExpressions{}
	if crd == nil {
		return all
	}
	note := func(s *apiextensions.JSONSchemaProps) {
		for _, rule := range s.XValidations {
			all[rule.Rule], all[rule.MessageExpression] = true, true
		}
	}
	for _, s := range SchemasOf(crd) {
		EachSchema(s, note)
	}
	return all
}

// SchemasOf returns the schemas of all versions, or the schema that they share.
func SchemasOf(crd *apiextensions.CustomResourceDefinition) (all []*apiextensions.JSONSchemaProps) {
	if v := crd.Spec.Validation; v != nil && v.OpenAPIV3Schema != nil {
		all = append(all, v.OpenAPIV3Schema)
	}
	for _, v := range crd.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			all = append(all, v.Schema.OpenAPIV3Schema)
		}
	}
	return all
}

// EachSchema calls see for s and every schema inside it.
func EachSchema(s *apiextensions.JSONSchemaProps, see func(*apiextensions.JSONSchemaProps)) {
	if s == nil {
		return
	}
	see(s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		EachSchema(&property, see)
	}
	for _, list := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			EachSchema(&list[i], see)
		}
	}
	EachSchema(s.Not, see)
	if s.Items != nil {
		EachSchema(s.Items.Schema, see)
	}
	if s.AdditionalProperties != nil {
		EachSchema(s.AdditionalProperties.Schema, see)
	}
}

// RuleEnv returns the environment of a rule. An existing rule may use more than a new one.
func (o oldExpressions) RuleEnv(set *environment.EnvSet, expression string) *celgo.Env {
	if o[expression] {
		return set.StoredExpressionsEnv()
	}
	return set.NewExpressionsEnv()
}

// MessageExpressionEnv returns the environment of a message expression.
func (o oldExpressions) MessageExpressionEnv(set *environment.EnvSet, expression string) *celgo.Env {
	return o.RuleEnv(set, expression)
}

// rule validates the form of one rule before it is compiled.
func (w *schemaWalk) rule(s *apiextensions.JSONSchemaProps, rule *apiextensions.ValidationRule, path *field.Path) {
	text, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
	switch {
	case text == "":
		w.add(field.Required(path.Child("rule"), "rule is not specified"))
	case rule.Message != "" && message == "":
		w.add(field.Invalid(path.Child("message"), rule.Message, "must be non-empty if specified"))
	case manyLines(message):
		w.add(field.Invalid(path.Child("message"), rule.Message, "must not contain line breaks"))
	case manyLines(text) && message == "":
		w.add(field.Required(path.Child("message"), "message must be specified if rule contains line breaks"))
	}
	if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
		w.add(field.Required(path.Child("messageExpression"), "messageExpression must be non-empty if specified"))
	}
	reasons := []string{string(apiextensions.FieldValueDuplicate), string(apiextensions.FieldValueForbidden), string(apiextensions.FieldValueInvalid), string(apiextensions.FieldValueRequired)}
	if rule.Reason != nil && !slices.Contains(reasons, string(*rule.Reason)) {
		w.add(field.NotSupported(path.Child("reason"), string(*rule.Reason), reasons))
	}
	if rule.FieldPath == "" {
		return
	}
	if strings.TrimSpace(rule.FieldPath) == "" {
		w.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must be non-empty if specified"))
	}
	if manyLines(rule.FieldPath) {
		w.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must not contain line breaks"))
	}
	if structural, err := structuralschema.NewStructural(s); err == nil {
		if _, _, err := cel.ValidFieldPath(rule.FieldPath, structural); err != nil {
			w.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must be a valid path"))
		}
	}
}

func manyLines(text string) bool { return strings.ContainsAny(text, "\n\r") }
