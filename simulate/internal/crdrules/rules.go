// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdrules validates CustomResourceDefinitions: their names, their schemas, and the
// CEL rules in these with their cost. Its functions are pure.
package crdrules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules validates a CRD as a real server does. As there, an error about what all versions
// share is reported once, for the whole CRD.
type Rules struct {
	CRD, Old *apiextensions.CustomResourceDefinition // Old is nil for a new CRD
}

// Validate returns the errors of the CRD, except those of its metadata.
func (r *Rules) Validate() (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = append(errs, r.general(spec)...)
	for i := range r.CRD.Spec.Versions {
		errs = append(errs, r.version(&r.CRD.Spec.Versions[i], spec.Child("versions").Index(i))...)
	}
	errs = append(errs, r.versions(spec.Child("versions"))...)
	errs = append(errs, requiredNames(&r.CRD.Spec.Names, spec.Child("names"))...)
	errs = append(errs, WellNamed(&r.CRD.Spec.Names, spec.Child("names"))...)
	errs = append(errs, r.common(spec)...)
	errs = append(errs, r.conversion(spec.Child("conversion"))...)
	errs = append(errs, r.unchanged(spec)...)
	errs = append(errs, WellNamed(&r.CRD.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))...)
	errs = append(errs, r.stored(field.NewPath("status", "storedVersions"))...)
	errs = append(errs, r.approved()...)
	if keeps := r.CRD.Spec.PreserveUnknownFields; keeps != nil && *keeps {
		errs = append(errs, field.Invalid(spec.Child("preserveUnknownFields"), keeps, "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

// general validates the group, the scope, and that there are schemas at all.
func (r *Rules) general(path *field.Path) (errs field.ErrorList) {
	spec := &r.CRD.Spec
	if spec.Group == "" {
		errs = append(errs, field.Required(path.Child("group"), ""))
	} else if problems := utilvalidation.IsDNS1123Subdomain(spec.Group); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("group"), spec.Group, strings.Join(problems, ",")))
	} else if !strings.Contains(spec.Group, ".") {
		errs = append(errs, field.Invalid(path.Child("group"), spec.Group, "should be a domain with at least one dot"))
	}
	errs = append(errs, oneOf(path.Child("scope"), string(spec.Scope), string(apiextensions.ClusterScoped), string(apiextensions.NamespaceScoped))...)
	if spec.Validation == nil || spec.Validation.OpenAPIV3Schema == nil {
		for i, v := range spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				errs = append(errs, field.Required(path.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), ""))
			}
		}
	}
	return errs
}

func oneOf(path *field.Path, value string, accepted ...string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case slices.Contains(accepted, value):
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, accepted)}
}

// version validates one version alone.
func (r *Rules) version(v *apiextensions.CustomResourceDefinitionVersion, path *field.Path) (errs field.ErrorList) {
	if problems := utilvalidation.IsDNS1035Label(v.Name); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("name"), v.Name, strings.Join(problems, ",")))
	}
	for _, problem := range deprecationProblems(v.Deprecated, v.DeprecationWarning) {
		errs = append(errs, field.Invalid(path.Child("deprecationWarning"), v.DeprecationWarning, problem))
	}
	subresources := cmp.Or(v.Subresources, r.CRD.Spec.Subresources)
	hasStatus := subresources != nil && subresources.Status != nil
	errs = append(errs, r.schema(v.Schema, hasStatus, v.Name, path.Child("schema"))...)
	errs = append(errs, validSubresources(v.Subresources, path.Child("subresources"))...)
	errs = append(errs, validColumns(v.AdditionalPrinterColumns, path.Child("additionalPrinterColumns"))...)
	return append(errs, selectableFields(v.SelectableFields, v.Schema, path, "may only be set when `version.schema.openAPIV3Schema` is not included")...)
}

// versions validates all versions together.
func (r *Rules) versions(path *field.Path) (errs field.ErrorList) {
	names, storages := map[string]int{}, 0
	for _, v := range r.CRD.Spec.Versions {
		names[v.Name]++
		if v.Storage {
			storages++
		}
	}
	if len(names) < len(r.CRD.Spec.Versions) {
		errs = append(errs, field.Invalid(path, r.CRD.Spec.Versions, "must contain unique version names"))
	}
	if storages != 1 {
		errs = append(errs, field.Invalid(path, r.CRD.Spec.Versions, "must have exactly one version marked as storage version"))
	}
	if version := r.CRD.Spec.Version; version != "" {
		if problems := utilvalidation.IsDNS1035Label(version); len(problems) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("spec", "version"), version, strings.Join(problems, ",")))
		}
	}
	return errs
}

// common validates what all versions share.
func (r *Rules) common(path *field.Path) (errs field.ErrorList) {
	spec := &r.CRD.Spec
	hasStatus := spec.Subresources != nil && spec.Subresources.Status != nil
	for _, v := range spec.Versions {
		hasStatus = hasStatus || v.Subresources != nil && v.Subresources.Status != nil
	}
	errs = append(errs, r.schema(spec.Validation, hasStatus, spec.Version, path.Child("validation"))...)
	errs = append(errs, validSubresources(spec.Subresources, path.Child("subresources"))...)
	errs = append(errs, validColumns(spec.AdditionalPrinterColumns, path.Child("additionalPrinterColumns"))...)
	return append(errs, selectableFields(spec.SelectableFields, spec.Validation, path, "may only be set when validations.schema is included")...)
}

// unchanged validates that an update leaves immutable fields alone.
func (r *Rules) unchanged(path *field.Path) (errs field.ErrorList) {
	if r.Old == nil {
		return nil
	}
	is, was := &r.CRD.Spec, &r.Old.Spec
	if apiextensions.IsCRDConditionTrue(r.Old, apiextensions.Established) {
		errs = append(errs, apivalidation.ValidateImmutableField(is.Scope, was.Scope, path.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(is.Names.Kind, was.Names.Kind, path.Child("names", "kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(is.Group, was.Group, path.Child("group"))...)
	return append(errs, apivalidation.ValidateImmutableField(is.Names.Plural, was.Names.Plural, path.Child("names", "plural"))...)
}

// stored validates the versions in which objects may be stored.
func (r *Rules) stored(path *field.Path) (errs field.ErrorList) {
	stored := r.CRD.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	gone := map[string]int{}
	for i, name := range stored {
		gone[name] = i
	}
	for _, v := range r.CRD.Spec.Versions {
		if _, ok := gone[v.Name]; v.Storage && !ok {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v.Name))
		}
		delete(gone, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		errs = append(errs, field.Invalid(path.Index(gone[name]), name, "missing from spec.versions; "+name+" was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in "+name+" and removes "+name+" from status.storedVersions"))
	}
	return errs
}

// approved validates the annotation that groups of Kubernetes itself need.
func (r *Rules) approved() field.ErrorList {
	if !apihelpers.IsProtectedCommunityGroup(r.CRD.Spec.Group) {
		return nil
	}
	state, reason := apihelpers.GetAPIApprovalState(r.CRD.Annotations)
	if r.Old != nil {
		if was, _ := apihelpers.GetAPIApprovalState(r.Old.Annotations); was == state {
			return nil
		}
	}
	path := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state {
	case apihelpers.APIApproved, apihelpers.APIApprovalBypassed:
		return nil
	case apihelpers.APIApprovalMissing:
		return field.ErrorList{field.Required(path, reason)}
	}
	return field.ErrorList{field.Invalid(path, r.CRD.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], reason)}
}

// sameSchema reports whether the schema of a version is unchanged.
func (r *Rules) sameSchema(version string) bool {
	if r.Old == nil {
		return false
	}
	is, err := apiextensions.GetSchemaForVersion(r.CRD, version)
	was, problem := apiextensions.GetSchemaForVersion(r.Old, version)
	return err == nil && problem == nil && equality.Semantic.DeepEqual(is, was)
}
