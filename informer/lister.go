// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lister reads an informer's objects, those of its scopes. It is a value,
// safe for concurrent use.
type Lister[T Object] struct{ v *view[T] }

// view is what a Lister looks at and through.
type view[T Object] struct {
	store    *Indexer[T]
	scopes   *scopeSet                   // nil: all
	covers   func(namespace string) bool // nil: every namespace
	synced   func() bool                 // nil: yes
	resource func() schema.GroupResource // for NotFound; nil: the kind stands in
}

func newLister[T Object](v view[T]) Lister[T] { return Lister[T]{v: &v} }

// QueryOptions choose objects for List. Zero: all.
type QueryOptions struct {
	Namespace  string          // empty: all
	Selector   labels.Selector // nil: all
	Index      string          // empty: no index
	IndexValue string
}

// Get returns the object of key.
func (l Lister[T]) Get(key Key) (obj T, err error) { return obj, nil }

// All yields every object.
func (l Lister[T]) All() iter.Seq[T] { return func(func(T) bool) {} }

// Namespace yields the objects of one namespace.
func (l Lister[T]) Namespace(namespace string) iter.Seq[T] { return func(func(T) bool) {} }

// Select yields the objects that match a label selector.
func (l Lister[T]) Select(s labels.Selector) iter.Seq[T] { return func(func(T) bool) {} }

// ByIndex yields the objects with an index value.
func (l Lister[T]) ByIndex(name, value string) (iter.Seq[T], error) { return nil, nil }

// IndexKeys returns the keys of the objects with an index value.
func (l Lister[T]) IndexKeys(name, value string) ([]Key, error) { return nil, nil }

// Index yields the objects that share an index value with like.
func (l Lister[T]) Index(name string, like T) (iter.Seq[T], error) { return nil, nil }

// IndexValues returns the values of an index that have an object, sorted.
func (l Lister[T]) IndexValues(name string) ([]string, error) { return nil, nil }

// List returns objects as a slice.
func (l Lister[T]) List(opts QueryOptions) ([]T, error) { return nil, nil }
