// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// goPointer is a pointer to the Go type of a kind.
type goPointer[T any] interface {
	*T
	runtime.Object
}

// read returns an object in its Go type, or nil if there is none or it cannot be decoded.
// The caller may modify it. It has no managed fields.
func read[T any, P goPointer[T]](c *controllers, about Reference) *T {
	obj := c.get(about)
	if obj == nil {
		return nil
	}
	typed, err := readingOf[T, P](c, about, obj)
	if err != nil {
		return nil
	}
	return typed
}

// readingOf decodes a version of an object, as read does.
func readingOf[T any, P goPointer[T]](c *controllers, about Reference, obj *object.Object) (*T, error) {
	if known := c.readings[about]; known.of == obj {
		if typed, ok := known.typed.DeepCopyObject().(P); ok {
			return typed, nil
		}
	}
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(jsontree.Unmanaged(obj.Fields), typed); err != nil {
		return nil, err
	}
	c.readings[about] = reading{obj, typed.DeepCopyObject()}
	return typed, nil
}

// readWhole is read with defaults, for an object that may have been stored without them.
func readWhole[T any, P goPointer[T]](c *controllers, about Reference) *T {
	typed := read[T, P](c, about)
	if typed != nil {
		defaults.Set(P(typed))
	}
	return typed
}
