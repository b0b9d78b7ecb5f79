// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a pointer to a Kubernetes API type.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within its kind. Namespace is empty for cluster-scoped
// kinds.
type Key = types.NamespacedName

// KeyOf returns the key of obj.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Copy returns a deep copy of obj. All readers share the objects that a Lister
// returns: copy before you modify one.
func Copy[T Object](obj T) T {
	return obj.DeepCopyObject().(T)
}
