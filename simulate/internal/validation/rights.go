// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateRules holds the rules of a role. Those of a namespace say nothing
// about paths.
func validateRules(rules []rbacv1.PolicyRule, namespaced bool) (errs field.ErrorList) {
	for i, rule := range rules {
		path := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			errs = append(errs, field.Required(path.Child("verbs"), ""))
		}
		if len(rule.NonResourceURLs) == 0 {
			if len(rule.APIGroups) == 0 {
				errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
			}
			if len(rule.Resources) == 0 {
				errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
			}
			continue
		}
		if namespaced {
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
	}
	return errs
}

func validateRole(o *rbacv1.Role) field.ErrorList { return validateRules(o.Rules, true) }

func validateClusterRole(o *rbacv1.ClusterRole) field.ErrorList { return validateRules(o.Rules, false) }

func validateRoleBinding(o, old *rbacv1.RoleBinding) field.ErrorList {
	b := binding{role: &o.RoleRef, subjects: o.Subjects, kinds: []string{"Role", "ClusterRole"}}
	if old != nil {
		b.old = &old.RoleRef
	}
	return b.validate()
}

func validateClusterRoleBinding(o, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	b := binding{role: &o.RoleRef, subjects: o.Subjects, kinds: []string{"ClusterRole"}}
	if old != nil {
		b.old = &old.RoleRef
	}
	return b.validate()
}

// binding is what bindings of both scopes have in common. old: the role that
// an earlier state refers to.
type binding struct {
	role, old *rbacv1.RoleRef
	subjects  []rbacv1.Subject
	kinds     []string // of roles that it may refer to
}

func (b binding) validate() (errs field.ErrorList) {
	path := field.NewPath("roleRef")
	if b.role.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), b.role.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(b.kinds, b.role.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), b.role.Kind, b.kinds))
	}
	errs = append(errs, required(path, "name", b.role.Name)...)
	for i, s := range b.subjects {
		errs = append(errs, validateSubject(s, len(b.kinds) > 1, field.NewPath("subjects").Index(i))...)
	}
	if b.old != nil {
		// The real server shows its inner type, whose fields have no JSON names.
		inner := func(r *rbacv1.RoleRef) any { return struct{ APIGroup, Kind, Name string }(*r) }
		errs = append(errs, immutable(inner(b.old), inner(b.role), path, "field is immutable")...)
	}
	return errs
}

func validateSubject(s rbacv1.Subject, namespaced bool, path *field.Path) (errs field.ErrorList) {
	errs = append(errs, required(path, "name", s.Name)...)
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}
