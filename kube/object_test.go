// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Every write accepts what marshals to JSON, so a copy does too, and shares nothing.
func TestCopy_TakesEveryValueThatAWriteTakes_B25(t *testing.T) {
	type own struct {
		A int `json:"a"`
	}
	labels := map[string]string{"k": "v"}
	u := &unstructured.Unstructured{Object: map[string]any{
		"int": 1, "int8": int8(2), "uint64": uint64(1 << 63), "float32": float32(0.1), "number": json.Number("7"),
		"strings": []string{"a"}, "labels": labels, "struct": own{3}, "pointer": &own{4},
		"nested": []any{map[string]any{"int": 5}}, "nil": nil, "none": map[string]any(nil),
	}}
	before, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	got := Copy(u)
	labels["k"] = "changed"
	after, err := json.Marshal(got.Object)
	if err != nil || string(after) != string(before) {
		t.Fatalf("the copy is %s, %v; want %s", after, err, before)
	}
	if got.Object["int"] != int64(1) || !reflect.DeepEqual(got.Object["struct"], map[string]any{"a": int64(3)}) {
		t.Errorf("got %#v, want what JSON decodes to", got.Object)
	}
	if again := got.DeepCopy(); !reflect.DeepEqual(again, got) { // it panics on what is no JSON value
		t.Errorf("got %v, want %v", again, got)
	}
	if object := Copy[Object](u); object.(*unstructured.Unstructured) == u {
		t.Error("the copy is the object itself")
	}
	u.Object = map[string]any{"broken": func() {}}
	Copy(u) // no write accepts it; it must not panic
}

func TestCopy_OfNilIsNil_B26(t *testing.T) {
	if Copy[*corev1.Pod](nil) != nil || Copy[*unstructured.Unstructured](nil) != nil || Copy[Object](nil) != nil {
		t.Error("a copy of nil is not nil")
	}
	for _, obj := range []metav1.Object{nil, (*corev1.Pod)(nil), (*unstructured.Unstructured)(nil)} {
		if got := KeyOf(obj); got != (Key{}) {
			t.Errorf("KeyOf of a nil %T is %v, want the zero Key", obj, got)
		}
	}
}
