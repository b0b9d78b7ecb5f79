// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"errors"
	"fmt"
	"reflect"
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

// CallTransform returns what transform makes of obj. A panic is an error, as is an object that is
// not the same one: of another type, name, namespace, UID or resourceVersion.
func CallTransform[T kube.Object](transform func(T) (T, error), obj T) (_ T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{value: p, Stack: string(debug.Stack())}
		}
	}()
	was := identityOf(obj)
	obj, err = transform(obj)
	switch {
	case err != nil:
	case IsNil(obj):
		err = errors.New("the function returned no object")
	default:
		err = was.check(obj)
	}
	return obj, err
}

// identity is what a transform must leave as it is.
type identity struct {
	typ    reflect.Type
	fields [4]string
}

func identityOf(obj kube.Object) identity {
	return identity{reflect.TypeOf(obj), [4]string{obj.GetNamespace(), obj.GetName(), string(obj.GetUID()), obj.GetResourceVersion()}}
}

// check returns an error if obj, which a transform has returned, has another identity.
func (was identity) check(obj kube.Object) error {
	switch is := identityOf(obj); {
	case is.typ != was.typ:
		return fmt.Errorf("the function returned a %s for a %s; it must return the type of its argument", is.typ, was.typ)
	case is != was:
		return fmt.Errorf("the function changed namespace, name, UID or resourceVersion from %q to %q; they must stay", was.fields, is.fields)
	}
	return nil
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
