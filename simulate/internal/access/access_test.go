// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// stored are objects by resource.
type stored map[string][]*object.Object

func (s stored) Get(schema.GroupResource, types.NamespacedName) *object.Object { return nil }

func (s stored) Lists(of ...schema.GroupResource) (out [][]*object.Object) {
	for _, r := range of {
		out = append(out, s[r.Resource])
	}
	return out
}

func (s stored) add(t *testing.T, resource string, obj runtime.Object) {
	t.Helper()
	o, err := object.ObjectOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	s[resource] = append(s[resource], o)
}

func TestControl_AuthorizesWhatRolesGrant(t *testing.T) {
	s := stored{}
	x := &access.Control{Authorization: true, Objects: s}
	asked := func(method, path string, user access.User) bool {
		t.Helper()
		err := x.Authorize(httptest.NewRequest(method, path, nil), user)
		if err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%s %s: got %v, want a Forbidden", method, path, err)
		}
		return err == nil
	}
	ann, in := access.User{Name: "ann"}, "/api/v1/namespaces/ns/"
	if asked(http.MethodGet, in+"pods", ann) || !asked(http.MethodGet, in+"pods", access.User{Groups: []string{access.GroupMasters}}) {
		t.Error("without roles, masters alone may do something")
	}
	s.add(t, "roles", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"s"}, Verbs: []string{"*"}}}})
	s.add(t, "rolebindings", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"},
		RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}}})
	if asked(http.MethodGet, in+"pods", ann) {
		t.Error("the policy is made anew without a change of roles")
	}
	x.Changed(revisions.Change{Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}})
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodGet, in + "pods", true}, {http.MethodGet, in + "pods/a", true}, {http.MethodGet, in + "pods/a/log", false},
		{http.MethodDelete, in + "pods/a", false}, {http.MethodGet, in + "pods?watch=true", false}, {http.MethodGet, "/api/v1/pods", false},
		{http.MethodGet, "/api/v1/namespaces/other/pods", false}, {http.MethodGet, "/apis/apps/v1/namespaces/ns/pods", false},
		{http.MethodDelete, in + "secrets/s", true}, {http.MethodGet, in + "secrets/t", false}, {http.MethodGet, in + "secrets", false},
		{http.MethodGet, "/metrics", false},
	} {
		if got := asked(c.method, c.path, ann); got != c.want {
			t.Errorf("%s %s is allowed: %v, want %v", c.method, c.path, got, c.want)
		}
	}
	if asked(http.MethodGet, in+"pods", access.User{Name: "bob"}) {
		t.Error("bob has the rights of ann")
	}
}
