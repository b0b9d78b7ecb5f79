// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// IsNil reports whether obj is the zero T.
func IsNil[T kube.Object](obj T) bool {
	var none T
	return any(obj) == any(none)
}

func CallTransform[T kube.Object](transform func(T) (T, error), obj T) (_ T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{value: p, Stack: string(debug.Stack())}
		}
	}()
	obj, err = transform(obj)
	if err == nil && IsNil(obj) {
		err = errors.New("the function returned no object")
	}
	return obj, err
}

// PanicError is a panic of a user's function. Its text omits the stack, since
// each read of the key repeats it.
type PanicError struct {
	value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (e *PanicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// MetadataOf returns the metadata of obj in any representation. It shares maps
// and slices with obj where possible.
func MetadataOf(obj kube.Object, kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if m, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
			out.ObjectMeta = *m
			out.SetGroupVersionKind(kind)
			return out
		}
	}
	out = meta.AsPartialObjectMetadata(obj)
	out.SetGroupVersionKind(kind)
	return out
}

// WithoutManagedFields returns obj, or a shallow copy without managedFields.
func WithoutManagedFields(obj *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	if obj == nil || len(obj.ManagedFields) == 0 {
		return obj
	}
	out := *obj
	out.ManagedFields = nil
	return &out
}
