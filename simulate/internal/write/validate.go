// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

// ValidateCreate returns the errors of a new object.
func ValidateCreate(k *kinds.Kind, obj *object.Object) field.ErrorList {
	m := ownedMeta{obj.Meta()}
	errs := apivalidation.ValidateObjectMetaAccessor(m, k.Namespaced, nameRule(k), field.NewPath("metadata"))
	errs = append(errs, validateFinalizers(k, m.GetFinalizers())...)
	if k.Schema != nil && !obj.Corrupt {
		errs = k.Schema.Validate("", obj.Fields, nil, errs)
	}
	if k.GroupResource() == kinds.APIServices {
		errs = append(errs, validation.APIService(m.GetName(), obj.Fields)...)
	}
	return errs
}

// ValidateUpdate returns the errors of an object that replaces old.
func ValidateUpdate(k *kinds.Kind, subresource string, old, obj *object.Object) field.ErrorList {
	was, m, path := ownedMeta{old.Meta()}, ownedMeta{obj.Meta()}, field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMetaAccessor(m, k.Namespaced, pathSegment, path)
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, was, path)...)
	errs = append(errs, validateFinalizers(k, m.GetFinalizers())...)
	if k.Schema != nil && !obj.Corrupt {
		errs = k.Schema.Validate(subresource, obj.Fields, old.Fields, errs)
	}
	if subresource == "status" {
		errs = append(errs, validateStatus(k, obj)...)
	}
	return validation.Once(errs)
}

// validateFinalizers requires finalizers of built-in kinds to be known or to have a domain.
func validateFinalizers(k *kinds.Kind, names []string) (errs field.ErrorList) {
	known := []string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	for i, name := range names {
		if k.Builtin && !strings.Contains(name, "/") && !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// ownedMeta is metadata without managed fields: a field manager wrote them, and they are
// always valid.
type ownedMeta struct{ *unstructured.Unstructured }

func (ownedMeta) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// InvalidKind returns the kind that a refusal names. For the rules, Events of both groups
// are one kind.
func InvalidKind(k *kinds.Kind) schema.GroupKind {
	if k.GroupResource().String() == "events.events.k8s.io" {
		return schema.GroupKind{Kind: k.Kind}
	}
	return k.GroupKind()
}

// nameRule returns the rule for names of k's objects.
func nameRule(k *kinds.Kind) apivalidation.ValidateNameFunc {
	switch k.GroupResource().String() {
	case "namespaces", "services", "statefulsets.apps":
		return apivalidation.NameIsDNSLabel
	case "cronjobs.batch":
		return cronJobName
	case "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", "events", "events.events.k8s.io", "clustertrustbundles.certificates.k8s.io",
		"certificatesigningrequests.certificates.k8s.io", "poddisruptionbudgets.policy":
		return pathSegment
	}
	return apivalidation.NameIsDNSSubdomain
}

// cronJobName leaves room for the suffix of the names of Jobs.
func cronJobName(name string, prefix bool) []string {
	problems := apivalidation.NameIsDNSSubdomain(name, prefix)
	if len(name) > 63-11 {
		problems = append(problems, "must be no more than 52 characters")
	}
	return problems
}

// pathSegment allows every name that can be a path segment.
func pathSegment(name string, prefix bool) (problems []string) {
	if !prefix {
		if name == "." || name == ".." {
			return []string{"may not be '" + name + "'"}
		}
	}
	for _, illegal := range []string{"/", "%"} {
		if strings.Contains(name, illegal) {
			problems = append(problems, "may not contain '"+illegal+"'")
		}
	}
	return problems
}
