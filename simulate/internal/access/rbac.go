// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// policy is all roles and bindings of one moment, made when it is first asked
// for after a change of any. Nobody changes it.
type policy struct {
	roles        map[types.NamespacedName][]rbacv1.PolicyRule
	clusterRoles map[string][]rbacv1.PolicyRule
	cluster      []grant            // in the order of names
	in           map[string][]grant // by namespace, in the order of names
}

// grant is one binding.
type grant struct {
	what     string // as in reasons
	where    string // its namespace; "": everywhere
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// policy is that of now.
func (x *Control) policy() *policy {
	x.mu.Lock()
	known, changes := x.mu.policy, x.mu.changes
	x.mu.Unlock()
	if known != nil {
		return known
	}
	lists := x.Objects.Lists(policyResources...)
	all := map[string][]*object.Object{}
	for i, r := range policyResources {
		all[r.Resource] = lists[i]
	}
	made := newPolicy(func(resource string) []*object.Object { return all[resource] })
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.changes == changes { // else it may be of before the change
		x.mu.policy = made
	}
	return made
}

// policyResources are what a policy is made of.
var policyResources = []schema.GroupResource{
	{Group: rbacv1.GroupName, Resource: "roles"}, {Group: rbacv1.GroupName, Resource: "clusterroles"},
	{Group: rbacv1.GroupName, Resource: "rolebindings"}, {Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
}

// Changed has the policy made anew after a change of roles.
func (x *Control) Changed(c revisions.Change) {
	if c.Resource.Group != rbacv1.GroupName {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.policy = nil
	x.mu.changes++
}

func newPolicy(all func(resource string) []*object.Object) *policy {
	p := &policy{roles: map[types.NamespacedName][]rbacv1.PolicyRule{}, clusterRoles: map[string][]rbacv1.PolicyRule{}, in: map[string][]grant{}}
	for _, obj := range all("roles") {
		if role, err := object.TypedOf[rbacv1.Role](obj); err == nil {
			p.roles[object.NameOf(role)] = role.Rules
		}
	}
	p.addClusterRoles(all("clusterroles"))
	for _, obj := range all("clusterrolebindings") {
		if b, err := object.TypedOf[rbacv1.ClusterRoleBinding](obj); err == nil {
			p.cluster = append(p.cluster, grant{fmt.Sprintf("ClusterRoleBinding %q of %s %q", b.Name, b.RoleRef.Kind, b.RoleRef.Name), "", b.RoleRef, b.Subjects})
		}
	}
	for _, obj := range all("rolebindings") {
		if b, err := object.TypedOf[rbacv1.RoleBinding](obj); err == nil {
			what := fmt.Sprintf("RoleBinding %q of %s %q", b.Name+"/"+b.Namespace, b.RoleRef.Kind, b.RoleRef.Name)
			p.in[b.Namespace] = append(p.in[b.Namespace], grant{what, b.Namespace, b.RoleRef, b.Subjects})
		}
	}
	return p
}

// addClusterRoles takes in ClusterRoles. One that aggregates others has their
// rules, and those of roles that these aggregate.
func (p *policy) addClusterRoles(objects []*object.Object) {
	var roles []*rbacv1.ClusterRole
	for _, obj := range objects {
		if role, err := object.TypedOf[rbacv1.ClusterRole](obj); err == nil {
			roles = append(roles, role)
		}
	}
	var rules func(role *rbacv1.ClusterRole, above []string) []rbacv1.PolicyRule
	rules = func(role *rbacv1.ClusterRole, above []string) []rbacv1.PolicyRule {
		out := slices.Clone(role.Rules)
		if role.AggregationRule == nil {
			return out
		}
		above = append(slices.Clone(above), role.Name)
		for _, other := range roles {
			if !slices.Contains(above, other.Name) && aggregates(role, other) {
				out = append(out, rules(other, above)...)
			}
		}
		return out
	}
	for _, role := range roles {
		p.clusterRoles[role.Name] = rules(role, nil)
	}
}

func aggregates(role, other *rbacv1.ClusterRole) bool {
	return slices.ContainsFunc(role.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(other.Labels))
	})
}

// rules are those of a role, as a binding in a namespace names it.
func (p *policy) rules(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		if rules, ok := p.roles[types.NamespacedName{Namespace: namespace, Name: ref.Name}]; ok {
			return rules, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "role"}, ref.Name)
	}
	if rules, ok := p.clusterRoles[ref.Name]; ok {
		return rules, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrole"}, ref.Name)
}

// each calls see with each rule that a user has in a namespace, and where it
// has it from, until see says that it is enough. It returns the roles that are
// named and are not there.
func (p *policy) each(u User, namespace string, see func(rule *rbacv1.PolicyRule, from string) (enough bool)) []error {
	var missing []error
	grants := p.cluster
	if namespace != "" {
		grants = append(slices.Clone(grants), p.in[namespace]...)
	}
	for _, g := range grants {
		i := slices.IndexFunc(g.subjects, func(subject rbacv1.Subject) bool { return means(subject, u, g.where) })
		if i < 0 {
			continue
		}
		rules, err := p.rules(g.ref, g.where)
		if err != nil {
			missing = append(missing, err)
		}
		for n := range rules {
			if see(&rules[n], g.what+" to "+described(g.subjects[i], g.where)) {
				return missing
			}
		}
	}
	return missing
}

// means reports whether a subject of a binding in a namespace is a user.
func means(subject rbacv1.Subject, u User, namespace string) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == u.Name
	case rbacv1.GroupKind:
		return u.in(subject.Name)
	case rbacv1.ServiceAccountKind:
		if subject.Namespace != "" {
			namespace = subject.Namespace
		}
		return namespace != "" && u.Name == AccountUser(namespace, subject.Name)
	}
	return false
}

func described(subject rbacv1.Subject, namespace string) string {
	if subject.Kind != rbacv1.ServiceAccountKind {
		return fmt.Sprintf("%s %q", subject.Kind, subject.Name)
	}
	if subject.Namespace != "" {
		namespace = subject.Namespace
	}
	return fmt.Sprintf("%s %q", subject.Kind, subject.Name+"/"+namespace)
}

// allows decides about a, and says why.
func (p *policy) allows(a Attributes) (allowed bool, reason string) {
	missing := p.each(a.User, a.Namespace, func(rule *rbacv1.PolicyRule, from string) bool {
		if permits(rule, a) {
			allowed, reason = true, "RBAC: allowed by "+from
		}
		return allowed
	})
	if !allowed && len(missing) > 0 {
		reason = fmt.Sprintf("rbac: RBAC: %v", utilerrors.NewAggregate(missing))
	}
	return allowed, reason
}

// permits reports whether one rule is enough for a.
func permits(rule *rbacv1.PolicyRule, a Attributes) bool {
	if !holds(rule.Verbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return covers(url, a.Path) })
	}
	return holds(rule.APIGroups, a.Group) && holdsResource(rule.Resources, a.whole(), a.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

func holds(list []string, one string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, one)
}

func holdsResource(list []string, whole, subresource string) bool {
	return holds(list, whole) || subresource != "" && slices.Contains(list, "*/"+subresource)
}

// covers reports whether a path is one that a rule names.
func covers(url, path string) bool {
	prefix, open := strings.CutSuffix(url, "*")
	return url == path || open && strings.HasPrefix(path, prefix)
}
