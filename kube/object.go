// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Object is a pointer to a Kubernetes API type.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within its kind. Namespace is empty for cluster-scoped
// kinds.
type Key = types.NamespacedName

// KeyOf returns the key of obj; of nil, the zero Key.
func KeyOf(obj metav1.Object) Key {
	if isNil(obj) {
		return Key{}
	}
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// CompareKeys orders keys by namespace, then by name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Copy returns a deep copy of obj. All readers share the objects that a Lister
// returns: copy before you modify one. A nil obj is returned as it is. An
// unstructured object may hold any value that marshals to JSON; the copy has what
// decoding the JSON would give, such as int64 for int.
func Copy[T Object](obj T) T {
	if isNil(obj) {
		return obj
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		fields, _ := copyTree(u.Object).(map[string]any)
		return any(&unstructured.Unstructured{Object: fields}).(T)
	}
	return obj.DeepCopyObject().(T)
}

// copyTree copies a JSON value. apimachinery's copy panics on an int and on Go values that
// are no JSON value, which programs put into unstructured objects, and which every write
// accepts.
func copyTree(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int64, float64, json.Number:
		return v
	case int:
		return int64(v)
	case uint64:
		if v > math.MaxInt64 {
			return json.Number(strconv.FormatUint(v, 10)) // a float64 would not hold it
		}
		return int64(v)
	case map[string]any:
		if v == nil {
			return v
		}
		to := make(map[string]any, len(v))
		for name, field := range v {
			to[name] = copyTree(field)
		}
		return to
	case []any:
		if v == nil {
			return v
		}
		to := make([]any, len(v))
		for i, element := range v {
			to[i] = copyTree(element)
		}
		return to
	}
	data, err := json.Marshal(value)
	var to any
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(data, &to) != nil {
		return value // no write accepts it
	}
	return to
}

// isNil reports whether obj is nil, or a nil pointer.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
