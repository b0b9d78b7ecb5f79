// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func of(t *testing.T, obj runtime.Object) *object.Object {
	t.Helper()
	o, err := object.ObjectOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A stored object is shared, so nothing that is made of it may change it.
func TestObject_IsNotChangedByWhatIsMadeOfIt(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1"}, Data: map[string]string{"v": "1"}}
	o := of(t, cm)
	later, copied := o.At(7), o.Copy()
	cm.Data["v"] = "2"
	copied.Meta().SetName("b")
	_ = object.Retype(copied, &corev1.ConfigMap{Data: map[string]string{"v": "3"}})
	typed, err := object.TypedOf[corev1.ConfigMap](o)
	if err != nil || typed.Data["v"] != "1" || o.Key().String() != "ns/a" || o.Revision() != 1 {
		t.Errorf("the object is now %v at %d (%v), want ns/a with 1 at 1", o.Fields, o.Revision(), err)
	}
	if later.Revision() != 7 || later.Key() != o.Key() {
		t.Errorf("At(7) is %s at %d", later.Key(), later.Revision())
	}
	if object.Same(o, later) || object.Same(o, copied) || !object.Same(o, o.Copy()) {
		t.Error("Same tells by version and content, and knows a copy")
	}
	corrupt := o.Copy()
	corrupt.Corrupt = true
	if object.Same(corrupt, o) || object.Same(o, corrupt) {
		t.Error("a corrupted object is the same as a sound one, so writing it would heal nothing")
	}
}

func TestEncoding_IsFoundByKindAndForm(t *testing.T) {
	one, two := new(int), new(int)
	first := &object.Encoding{Kind: one, Form: object.ContentForm{Protobuf: true}}
	list := &object.Encoding{Kind: two, Form: object.ContentForm{Protobuf: true}, Next: &object.Encoding{Kind: one, Next: first}}
	if got := list.In(one, object.ContentForm{Protobuf: true}); got != first {
		t.Errorf("got %+v, want the protobuf form of the first kind", got)
	}
	if got := list.In(two, object.ContentForm{}); got != nil || got.Kept() != nil {
		t.Errorf("got %+v for a form that is not there", got)
	}
	content := []byte("x")
	if first.Content.Store(&content); string(first.Kept()) != "x" {
		t.Errorf("kept %q, want the content", first.Kept())
	}
	if first.Content.Store(nil); first.Kept() != nil {
		t.Error("dropped content is still there")
	}
}
