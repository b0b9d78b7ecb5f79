// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// goPointer is a pointer to the Go type of a kind.
type goPointer[T any] interface {
	*T
	runtime.Object
}

// reading is what was last read of an object, in its Go type. Most looks are at
// what has not changed since, and reading costs a hundred times as much as a copy.
type reading struct {
	of    *object.Object
	typed runtime.Object
}

// read is an object in its Go type; nil: there is none, or it does not fit. The
// caller may change it. It lacks the managed fields.
func read[T any, P goPointer[T]](c *company, about Reference) *T {
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

// readingOf is read of a version of an object.
func readingOf[T any, P goPointer[T]](c *company, about Reference, obj *object.Object) (*T, error) {
	if known := c.readings[about]; known.of == obj {
		if typed, ok := known.typed.DeepCopyObject().(P); ok {
			return typed, nil
		}
	}
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(jsonvalue.Unmanaged(obj.Fields), typed); err != nil {
		return nil, err
	}
	c.readings[about] = reading{obj, typed.DeepCopyObject()}
	return typed, nil
}

// readWhole is read, with the defaults that an object lacks that was stored
// without the hops of a request.
func readWhole[T any, P goPointer[T]](c *company, about Reference) *T {
	typed := read[T, P](c, about)
	if typed != nil {
		defaults.Set(P(typed))
	}
	return typed
}
