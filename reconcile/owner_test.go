// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func parentOf(namespace, name, uid string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
}

func TestOwnerReference_RefusesWhatTheCollectorWouldDelete_R8(t *testing.T) {
	controller := func(uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "p", UID: types.UID(uid), Controller: new(true), BlockOwnerDeletion: new(true)}
	}
	plain := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "p", UID: "u"}
	clusterOwner := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}
	nodeRef := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: new(true), BlockOwnerDeletion: new(true)}
	unread, own := parentOf("prod", "p", ""), &unstructured.Unstructured{}
	own.SetAPIVersion("example.com/v1")
	own.SetKind("Website")
	own.SetNamespace("prod")
	own.SetName("w")
	own.SetUID("w")
	nameless := own.DeepCopy()
	nameless.SetKind("")
	old := controller("u")
	old.APIVersion = "v0"
	for _, row := range []struct {
		name      string
		owner     kube.Object
		namespace string // of the object
		has       []metav1.OwnerReference
		want      []metav1.OwnerReference
		err       string
	}{
		{"the first", parentOf("prod", "p", "u"), "prod", nil, []metav1.OwnerReference{controller("u")}, ""},
		{"again", parentOf("prod", "p", "u"), "prod", []metav1.OwnerReference{controller("u")}, []metav1.OwnerReference{controller("u")}, ""},
		{"again, of an older version", parentOf("prod", "p", "u"), "prod", []metav1.OwnerReference{old}, []metav1.OwnerReference{controller("u")}, ""},
		{"beside an owner", parentOf("prod", "p", "2"), "prod", []metav1.OwnerReference{plain}, []metav1.OwnerReference{plain, controller("2")}, ""},
		{"an owner becomes controller", parentOf("prod", "p", "u"), "prod", []metav1.OwnerReference{plain}, []metav1.OwnerReference{controller("u")}, ""},
		{"of cluster scope", clusterOwner, "prod", nil, []metav1.OwnerReference{nodeRef}, ""},
		{"of cluster scope for such", clusterOwner, "", nil, []metav1.OwnerReference{nodeRef}, ""},
		{"unstructured", own, "prod", nil, []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Website", Name: "w", UID: "w", Controller: new(true), BlockOwnerDeletion: new(true)}}, ""},

		{"a second controller", parentOf("prod", "p", "2"), "prod", []metav1.OwnerReference{controller("u")}, nil, "object prod/a is already controlled by ConfigMap p of UID u"},
		{"another namespace", parentOf("dev", "p", "u"), "prod", nil, nil, "set owner of prod/a: ConfigMap dev/p is in another namespace"},
		{"a namespace for what has none", parentOf("dev", "p", "u"), "", nil, nil, "is in a namespace and the object in none"},
		{"not read", unread, "prod", nil, nil, "read from the server"},
		{"nil", (*corev1.ConfigMap)(nil), "prod", nil, nil, "nil"},
		{"no kind", nameless, "prod", nil, nil, "kind"},
		{"not in the scheme", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"}}, "prod", nil, nil, "not in the scheme"},
	} {
		t.Run(row.name, func(t *testing.T) {
			obj := deployment("a", func(d *appsv1.Deployment) { d.Namespace, d.OwnerReferences, d.UID = row.namespace, row.has, "child" })
			before := obj.DeepCopy()
			err := reconcile.SetControllerReference(row.owner, obj, testScheme(t))
			switch {
			case row.err == "" && (err != nil || !reflect.DeepEqual(obj.OwnerReferences, row.want)):
				t.Errorf("got %v, %v\nwant %v", obj.OwnerReferences, err, row.want)
			case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
				t.Errorf("got %v, want an error that says %q", err, row.err)
			case row.err != "" && !reflect.DeepEqual(obj, before):
				t.Errorf("after an error the object is %v, want it as it was", obj)
			}
		})
	}
	obj := deployment("a", func(d *appsv1.Deployment) { d.UID = "u" })
	if err := reconcile.SetOwnerReference(obj, obj, testScheme(t)); err == nil || !strings.Contains(err.Error(), "that very object") {
		t.Errorf("got %v, want that an object cannot own itself", err)
	}
	if err := reconcile.SetOwnerReference(parentOf("prod", "p", "u"), obj, nil); err == nil || !strings.Contains(err.Error(), "mgr.Scheme()") {
		t.Errorf("got %v, want an error that names the scheme", err)
	}
}

func TestOwnerReference_SeveralOwners_R8(t *testing.T) {
	obj := deployment("a")
	shared := obj.OwnerReferences
	first, second := parentOf("prod", "p", "1"), parentOf("prod", "q", "2")
	scheme := testScheme(t)
	if err := errors.Join(reconcile.SetControllerReference(first, obj, scheme), reconcile.SetOwnerReference(second, obj, scheme), reconcile.SetOwnerReference(first, obj, scheme)); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(obj, first) || metav1.IsControlledBy(obj, second) || len(obj.OwnerReferences) != 2 || len(shared) != 0 {
		t.Errorf("owners are %v, want the first as controller and the second beside it", obj.OwnerReferences)
	}
	before := obj.OwnerReferences
	if !reconcile.RemoveOwnerReference(first, obj) || reconcile.RemoveOwnerReference(first, obj) {
		t.Error("an owner goes once")
	}
	if len(obj.OwnerReferences) != 1 || obj.OwnerReferences[0].UID != "2" || before[0].UID != "1" {
		t.Errorf("owners are %v, were %v; the list before may be a Lister's", obj.OwnerReferences, before)
	}
}
