// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Errors about the names, paths and columns of a CRD.

const mostSelectable = 8

func requiredNames(names *apiextensions.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	for _, each := range []struct{ name, value string }{
		{"plural", names.Plural}, {"singular", names.Singular}, {"kind", names.Kind}, {"listKind", names.ListKind},
	} {
		if each.value == "" {
			errs = append(errs, field.Required(path.Child(each.name), ""))
		}
	}
	return errs
}

func WellNamed(names *apiextensions.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	label := func(path *field.Path, value, tested, before string) {
		if problems := utilvalidation.IsDNS1035Label(tested); len(problems) > 0 {
			errs = append(errs, field.Invalid(path, value, before+strings.Join(problems, ",")))
		}
	}
	for _, each := range []struct{ name, value string }{{"plural", names.Plural}, {"singular", names.Singular}} {
		if each.value != "" {
			label(path.Child(each.name), each.value, each.value, "")
		}
	}
	for _, each := range []struct{ name, value string }{{"kind", names.Kind}, {"listKind", names.ListKind}} {
		if each.value != "" {
			label(path.Child(each.name), each.value, strings.ToLower(each.value), "may have mixed case, but should otherwise match: ")
		}
	}
	for i, name := range names.ShortNames {
		label(path.Child("shortNames").Index(i), name, name, "")
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	for i, name := range names.Categories {
		label(path.Child("categories").Index(i), name, name, "")
	}
	return errs
}

func deprecationProblems(deprecated bool, warning *string) (problems []string) {
	switch {
	case warning == nil:
		return nil
	case !deprecated:
		return []string{"can only be set for deprecated versions"}
	}
	if len(*warning) > 256 {
		problems = append(problems, "must be <= 256 characters long")
	}
	if *warning == "" {
		problems = append(problems, "must not be an empty string")
	}
	for i, r := range *warning {
		if !unicode.IsPrint(r) {
			problems = append(problems, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
			break
		}
	}
	if !utf8.ValidString(*warning) {
		problems = append(problems, "must only contain printable UTF-8 characters")
	}
	return problems
}

func validSubresources(subresources *apiextensions.CustomResourceSubresources, path *field.Path) (errs field.ErrorList) {
	if subresources == nil || subresources.Scale == nil {
		return nil
	}
	scale := subresources.Scale
	under := func(name, value, prefix string) {
		path := path.Child(name)
		if value == "" {
			errs = append(errs, field.Required(path, ""))
		} else if problems := simplePath(value, path); len(problems) > 0 {
			errs = append(errs, problems...)
		} else if !strings.HasPrefix(value, prefix+".") {
			errs = append(errs, field.Invalid(path, value, "should be a json path under "+prefix))
		}
	}
	under("scale.specReplicasPath", scale.SpecReplicasPath, ".spec")
	under("scale.statusReplicasPath", scale.StatusReplicasPath, ".status")
	if selector := scale.LabelSelectorPath; selector != nil && *selector != "" {
		path := path.Child("scale.labelSelectorPath")
		if problems := simplePath(*selector, path); len(problems) > 0 {
			errs = append(errs, problems...)
		} else if !strings.HasPrefix(*selector, ".spec.") && !strings.HasPrefix(*selector, ".status.") {
			errs = append(errs, field.Invalid(path, selector, "should be a json path under either .spec or .status"))
		}
	}
	return errs
}

func simplePath(path string, at *field.Path) field.ErrorList {
	if !strings.HasPrefix(path, ".") {
		return field.ErrorList{field.Invalid(at, path, "must be a simple json path starting with .")}
	}
	return nil
}

func validColumns(columns []apiextensions.CustomResourceColumnDefinition, path *field.Path) (errs field.ErrorList) {
	types := []string{"boolean", "date", "integer", "number", "string"}
	formats := []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
	for i, c := range columns {
		path := path.Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		if among := "must be one of " + strings.Join(types, ","); c.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), among))
		} else if !slices.Contains(types, c.Type) {
			errs = append(errs, field.Invalid(path.Child("type"), c.Type, among))
		}
		if c.Format != "" && !slices.Contains(formats, c.Format) {
			errs = append(errs, field.Invalid(path.Child("format"), c.Format, "must be one of "+strings.Join(formats, ",")))
		}
		if c.JSONPath == "" {
			errs = append(errs, field.Required(path.Child("JSONPath"), ""))
		} else {
			errs = append(errs, simplePath(c.JSONPath, path.Child("JSONPath"))...)
		}
	}
	return errs
}

// selectableFields validates selectable fields. path is the parent of the fields and of the
// schema.
func selectableFields(fields []apiextensions.SelectableField, in *apiextensions.CustomResourceValidation, path *field.Path, missing string) (errs field.ErrorList) {
	if len(fields) == 0 {
		return nil
	}
	path, at := path.Child("selectableFields"), path.Child("schema.openAPIV3Schema")
	if in == nil || in.OpenAPIV3Schema == nil {
		return field.ErrorList{field.Invalid(path, "", missing)}
	}
	structural, err := structuralschema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		errs = append(errs, field.Invalid(at, "", err.Error()))
	}
	seen := map[string]bool{}
	for i, f := range fields {
		path := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		parsed, found, err := cel.ValidFieldPath(f.JSONPath, structural, cel.WithFieldPathAllowArrayNotation(false))
		if err != nil {
			errs = append(errs, field.Invalid(path, f.JSONPath, fmt.Sprintf("is an invalid path: %v", err)))
			continue
		}
		if parsed.Root().String() == "metadata" {
			errs = append(errs, field.Invalid(path, f.JSONPath, "must not point to fields in metadata"))
		}
		if found == nil || !slices.Contains([]string{"string", "boolean", "integer"}, found.Type) {
			errs = append(errs, field.Invalid(path, f.JSONPath, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[parsed.String()] {
			errs = append(errs, field.Duplicate(path, f.JSONPath))
		}
		seen[parsed.String()] = true
	}
	if len(seen) > mostSelectable {
		errs = append(errs, field.TooMany(path, len(seen), mostSelectable))
	}
	return errs
}
