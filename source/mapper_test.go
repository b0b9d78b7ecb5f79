// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// websites are owners as known by discovery.
type websites struct{ namespaced, known bool }

func (websites) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "web.example.com", Version: "v1", Kind: "Website"}
}

func (w websites) Namespaced() (bool, bool) { return w.namespaced, w.known }

func reference(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name}
	if controller {
		ref.Controller = &controller
	}
	return ref
}

func TestOwned_NamesTheKeysOfOwners(t *testing.T) {
	var (
		namespaced = websites{true, true}
		cluster    = websites{false, true}
		unknown    = websites{}
		controller = reference("web.example.com/v1", "Website", "w", true)
		older      = reference("web.example.com/v1alpha1", "Website", "w", true)
		plain      = reference("web.example.com/v1", "Website", "p", false)
		otherKind  = reference("web.example.com/v1", "Page", "w", true)
		otherGroup = reference("other.example.com/v1", "Website", "w", true)
		malformed  = reference("a/b/c", "Website", "w", true)
		local      = Key{Namespace: "prod", Name: "w"}
		global     = Key{Name: "w"}
	)
	for _, tc := range []struct {
		name       string
		owners     websites
		namespace  string
		controller bool // only
		refs       []metav1.OwnerReference
		want       []Key
	}{
		{"controller", namespaced, "prod", true, []metav1.OwnerReference{controller}, []Key{local}},
		{"controller by another version", namespaced, "prod", true, []metav1.OwnerReference{older}, []Key{local}},
		{"no owner", namespaced, "prod", true, nil, nil},
		{"another kind", namespaced, "prod", true, []metav1.OwnerReference{otherKind}, nil},
		{"another group", namespaced, "prod", true, []metav1.OwnerReference{otherGroup}, nil},
		{"malformed version", namespaced, "prod", true, []metav1.OwnerReference{malformed}, nil},
		{"owner that is no controller", namespaced, "prod", true, []metav1.OwnerReference{plain}, nil},
		{"any owner", namespaced, "prod", false, []metav1.OwnerReference{plain, otherKind, controller}, []Key{{Namespace: "prod", Name: "p"}, local}},
		{"owner of cluster scope", cluster, "prod", true, []metav1.OwnerReference{controller}, []Key{global}},
		{"both of cluster scope", cluster, "", true, []metav1.OwnerReference{controller}, []Key{global}},
		{"scope unknown", unknown, "prod", true, []metav1.OwnerReference{controller}, []Key{local, global}},
		{"scope unknown, object of cluster scope", unknown, "", true, []metav1.OwnerReference{controller}, []Key{global}},
		{"impossible owner", namespaced, "", true, []metav1.OwnerReference{controller}, nil},
	} {
		obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "d", OwnerReferences: tc.refs}}
		if got := slices.Collect(ownersOf(tc.owners, tc.controller)(obj)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: keys %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestDistinct_KeepsTheFirstOfEach(t *testing.T) {
	many := make([]int, 0, 300)
	for i := range 300 {
		many = append(many, i%100)
	}
	for _, tc := range []struct{ keys, want []int }{
		{nil, nil},
		{[]int{1, 2, 1, 3, 2}, []int{1, 2, 3}},
		{many, many[:100]},
	} {
		if got := distinct(slices.Clone(tc.keys)); !slices.Equal(got, tc.want) {
			t.Errorf("distinct(%v) is %v, want %v", tc.keys, got, tc.want)
		}
	}
}
