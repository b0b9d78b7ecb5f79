// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Escalates refuses to write a role, or a binding of one, with rights that the
// writer does not have: a role needs the verb escalate then, a binding bind.
// old is nil for a new object.
func (x *Control) Escalates(user User, kind *kinds.Kind, old, obj *object.Object) error {
	if !x.Authorization || kind.Group != rbacv1.GroupName || user.in(GroupMasters) {
		return nil
	}
	if old != nil && onlyCollected(old, obj) {
		return nil
	}
	p, namespace := x.policy(), obj.Meta().GetNamespace()
	switch kind.Resource {
	case "roles", "clusterroles":
		role, err := object.TypedOf[rbacv1.ClusterRole](obj) // a Role has no more than that
		if err != nil || x.may(user, "escalate", kind.Resource, namespace, obj.Meta().GetName()) {
			return nil
		}
		if role.AggregationRule != nil && !p.hasAll(user, "", []rbacv1.PolicyRule{everyResource, everyPath}) {
			return refused(kind, obj, errors.New("must have cluster-admin privileges to use the aggregationRule"))
		}
		return p.confirm(user, kind, obj, namespace, role.Rules)
	case "rolebindings", "clusterrolebindings":
		binding, err := object.TypedOf[rbacv1.RoleBinding](obj)
		if err != nil {
			return nil
		}
		bound := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[binding.RoleRef.Kind]
		if x.may(user, "bind", bound, namespace, binding.RoleRef.Name) {
			return nil
		}
		rules, err := p.rules(binding.RoleRef, namespace)
		if err != nil {
			return apierrors.NewNotFound(kind.GroupResource(), binding.RoleRef.Name)
		}
		return p.confirm(user, kind, obj, namespace, rules)
	}
	return nil
}

// onlyCollected reports whether a write changes nothing but what the garbage
// collector works with.
func onlyCollected(old, obj *object.Object) bool {
	was, _ := old.Fields["metadata"].(map[string]any)
	is, _ := obj.Fields["metadata"].(map[string]any)
	return jsontree.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") && jsontree.SameBut(was, is, "ownerReferences", "finalizers", "managedFields", "resourceVersion")
}

var (
	everyResource = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	everyPath     = rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}
)

func (x *Control) may(user User, verb, resource, namespace, name string) bool {
	ok, _ := x.allowed(Attributes{User: user, Verb: verb, Group: rbacv1.GroupName, Resource: resource, Namespace: namespace, Name: name})
	return ok
}

func refused(kind *kinds.Kind, obj *object.Object, cause error) error {
	return apierrors.NewForbidden(kind.GroupResource(), obj.Meta().GetName(), cause)
}

// confirm refuses rules that a user does not have, and names them.
func (p *policy) confirm(user User, kind *kinds.Kind, obj *object.Object, namespace string, rules []rbacv1.PolicyRule) error {
	lacking, missing := p.lacking(user, namespace, rules)
	if len(lacking) == 0 {
		return nil
	}
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", user.Name, user.Groups, strings.Join(lacking, "\n"))
	if len(missing) > 0 {
		text += fmt.Sprintf("; resolution errors: %v", missing)
	}
	return refused(kind, obj, errors.New(text))
}

func (p *policy) hasAll(u User, namespace string, rules []rbacv1.PolicyRule) bool {
	lacking, _ := p.lacking(u, namespace, rules)
	return len(lacking) == 0
}

// lacking are those of rules that a user does not have, each in a line, in the
// order of lines.
func (p *policy) lacking(u User, namespace string, rules []rbacv1.PolicyRule) (lines []string, missing []error) {
	var has []rbacv1.PolicyRule
	missing = p.each(u, namespace, func(rule *rbacv1.PolicyRule, _ string) bool {
		has = append(has, *rule)
		return false
	})
	var lack []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, part := range broken(rule) {
			if !slices.ContainsFunc(has, func(h rbacv1.PolicyRule) bool { return contained(part, h) }) {
				lack = joined(lack, part)
			}
		}
	}
	for _, rule := range lack {
		lines = append(lines, compact(rule))
	}
	slices.Sort(lines)
	return lines, missing
}

// broken is a rule as rules of one verb on one thing each.
func broken(rule rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
	for _, verb := range rule.Verbs {
		verbs := []string{verb}
		for _, url := range rule.NonResourceURLs {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: verbs})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
				for _, name := range rule.ResourceNames {
					named := one
					named.ResourceNames = []string{name}
					out = append(out, named)
				}
				if len(rule.ResourceNames) == 0 {
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// contained reports whether a rule of one verb on one thing is part of another.
func contained(part, rule rbacv1.PolicyRule) bool {
	if !holds(rule.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return covers(url, part.NonResourceURLs[0]) })
	}
	_, subresource, _ := strings.Cut(part.Resources[0], "/")
	if !holds(rule.APIGroups, part.APIGroups[0]) || !holdsResource(rule.Resources, part.Resources[0], subresource) {
		return false
	}
	return len(rule.ResourceNames) == 0 || len(part.ResourceNames) > 0 && slices.Contains(rule.ResourceNames, part.ResourceNames[0])
}

// joined adds a rule to a list, into one that differs by its verbs alone.
func joined(list []rbacv1.PolicyRule, rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i, has := range list {
		verbs := has.Verbs
		if has.Verbs = rule.Verbs; reflect.DeepEqual(has, rule) {
			if !slices.Contains(verbs, rule.Verbs[0]) {
				list[i].Verbs = append(slices.Clone(verbs), rule.Verbs[0])
			}
			return list
		}
	}
	return append(list, rule)
}

// compact is a rule in one line.
func compact(rule rbacv1.PolicyRule) string {
	var parts []string
	add := func(name string, list []string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", name, list))
		}
	}
	add("APIGroups", rule.APIGroups)
	add("Resources", rule.Resources)
	add("NonResourceURLs", rule.NonResourceURLs)
	add("ResourceNames", rule.ResourceNames)
	add("Verbs", rule.Verbs)
	return "{" + strings.Join(parts, ", ") + "}"
}
