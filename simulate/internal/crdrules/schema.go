// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// besideStatus are the fields, by their Go names, that the root of a schema may have if the
// CRD has a status subresource.
var besideStatus = []string{"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"}

// schema validates the schema of a version, or of all versions.
func (r *Rules) schema(in *apiextensions.CustomResourceValidation, hasStatus bool, version string, path *field.Path) (errs field.ErrorList) {
	if in == nil {
		return nil
	}
	if in.OpenAPIV3Schema != nil {
		errs = r.root(in.OpenAPIV3Schema, hasStatus, version, path)
	}
	if len(errs) == 0 {
		if _, _, err := apiservervalidation.NewSchemaValidator(in.OpenAPIV3Schema); err != nil {
			errs = append(errs, field.Invalid(path, "", fmt.Sprintf("error building validator: %v", err)))
		}
	}
	return errs
}

func (r *Rules) root(s *apiextensions.JSONSchemaProps, hasStatus bool, version string, path *field.Path) (errs field.ErrorList) {
	at := path.Child("openAPIV3Schema")
	if hasStatus {
		errs = append(errs, rootBesideStatus(s, path)...)
	}
	if s.Nullable {
		errs = append(errs, field.Forbidden(path.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
	}
	w := &schemaWalk{cheap: r.sameSchema(version), old: expressionsOf(r.Old)}
	structural, unstructured := structuralschema.NewStructural(s)
	if unstructured == nil {
		if problems := structuralschema.ValidateStructural(at, structural); len(problems) > 0 {
			errs = append(errs, problems...)
		} else if problems, err := defaulting.ValidateDefaults(context.Background(), at, structural, true, true); err != nil {
			errs = append(errs, field.Invalid(at, "", err.Error()))
		} else if len(problems) > 0 {
			errs = append(errs, problems...)
		} else {
			w.ruled = true
		}
	}
	w.walk(s, spot{path: at, root: true, rules: rootRules(structural)})
	errs = append(append(errs, w.errs...), w.celErrs...)
	if len(errs) == 0 && unstructured != nil {
		errs = append(errs, field.Invalid(at, "", unstructured.Error()))
	}
	return append(errs, w.total.excess(at)...)
}

// rootBesideStatus validates the root of a schema with a status subresource: only
// besideStatus can be separated from the status.
func rootBesideStatus(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		switch {
		case fields.Field(i).IsZero():
		case name == "Type" && s.Type != "object":
			return field.ErrorList{field.Invalid(path.Child("openAPIV3Schema.type"), s.Type, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
		case !slices.Contains(besideStatus, name):
			return field.ErrorList{field.Invalid(path.Child("openAPIV3Schema"), *s, fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", besideStatus))}
		}
	}
	return nil
}

// spot is the position of a walk through a schema.
type spot struct {
	path       *field.Path
	root       bool
	metadata   bool        // inside kind, apiVersion or metadata
	noDefaults *string     // why defaults are forbidden here; nil: they are allowed
	unpaired   *field.Path // from here on, old and new values cannot be correlated
	rules      *ruleScope  // nil: CEL is not available here
}

// schemaWalk walks a schema and collects its errors.
type schemaWalk struct {
	errs, celErrs field.ErrorList
	ruled         bool // the schema can have CEL rules
	cheap         bool // costs are not checked, because the schema is unchanged
	old           oldExpressions
	total         totalCost
}

func (w *schemaWalk) walk(s *apiextensions.JSONSchemaProps, at spot) {
	if s == nil {
		return
	}
	errs := len(w.errs)
	w.supported(s, at)
	w.children(s, at)
	w.listsAndMaps(s, at.path)
	if len(s.XValidations) == 0 {
		return
	}
	for i := range s.XValidations {
		w.rule(s, &s.XValidations[i], at.path.Child("x-kubernetes-validations").Index(i))
	}
	if len(w.errs) == errs && at.rules != nil && w.ruled {
		w.compile(s, at)
	}
}

// within returns the position of a schema inside that of at.
func (at spot) within(path *field.Path) spot {
	at.path, at.root, at.rules = path, false, nil
	return at
}

// children walks the schemas inside s.
func (w *schemaWalk) children(s *apiextensions.JSONSchemaProps, at spot) {
	if more := s.AdditionalProperties; more != nil {
		if len(s.Properties) > 0 && (!more.Allows || more.Schema != nil) {
			w.add(field.Forbidden(at.path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
		}
		next := at.within(at.path.Child("additionalProperties"))
		next.rules = at.rules.values(s)
		if at.metadata {
			next.noDefaults = new("inside additionalProperties applying to object metadata")
		}
		w.walk(more.Schema, next)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		next := at.within(at.path.Child("properties").Key(name))
		next.rules = at.rules.property(s, name)
		if !cel.MapIsCorrelatable(s.XMapType) && next.unpaired == nil {
			next.unpaired = at.path
		}
		if (at.root || s.XEmbeddedResource) && slices.Contains([]string{"metadata", "kind", "apiVersion"}, name) {
			next.metadata = true
			if at.root {
				next.noDefaults = new("in top-level " + name)
			}
		}
		w.walk(&property, next)
	}
	w.walk(s.Not, at.within(at.path.Child("not")))
	for _, list := range []struct {
		name string
		of   []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range list.of {
			w.walk(&list.of[i], at.within(at.path.Child(list.name).Index(i)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Definitions)) {
		definition := s.Definitions[name]
		w.walk(&definition, at.within(at.path.Child("definitions").Key(name)))
	}
	w.items(s, at)
}

// items walks the schemas of the items of a list.
func (w *schemaWalk) items(s *apiextensions.JSONSchemaProps, at spot) {
	if s.Items == nil {
		return
	}
	next := at.within(at.path.Child("items"))
	next.rules = at.rules.items(s)
	if (s.XListType == nil || *s.XListType != "map") && next.unpaired == nil {
		next.unpaired = at.path
	}
	w.walk(s.Items.Schema, next)
	for i := range s.Items.JSONSchemas {
		next.path, next.rules = at.path.Child("items").Index(i), nil
		w.walk(&s.Items.JSONSchemas[i], next)
	}
}

func (w *schemaWalk) add(errs ...*field.Error) { w.errs = append(w.errs, errs...) }

// supported rejects what OpenAPI has and CRDs do not.
func (w *schemaWalk) supported(s *apiextensions.JSONSchemaProps, at spot) {
	path := at.path
	types := []string{"array", "boolean", "integer", "number", "object", "string"}
	if s.Type != "" && !slices.Contains(types, s.Type) {
		w.add(field.NotSupported(path.Child("type"), s.Type, types))
	}
	if s.Default != nil && at.noDefaults != nil {
		w.add(field.Forbidden(path.Child("default"), "must not be set "+*at.noDefaults))
	}
	for _, each := range []struct {
		name string
		has  bool
	}{
		{"id", s.ID != ""}, {"additionalItems", s.AdditionalItems != nil}, {"patternProperties", len(s.PatternProperties) > 0},
		{"definitions", len(s.Definitions) > 0}, {"dependencies", s.Dependencies != nil}, {"$ref", s.Ref != nil},
	} {
		if each.has {
			w.add(field.Forbidden(path.Child(each.name), each.name+" is not supported"))
		}
	}
	if s.Type == "null" {
		w.add(field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if s.Items != nil && len(s.Items.JSONSchemas) > 0 {
		w.add(field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if at.metadata && s.XEmbeddedResource {
		w.add(field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
	if s.UniqueItems {
		w.add(field.Forbidden(path.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
}
