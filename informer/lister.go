// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/vector"
)

// Lister reads an informer's objects, those of its scopes. What it returns is
// shared by all readers and must not be changed: Copy it first. Each loop over
// an iterator sees the objects as they were when the loop began, in no
// particular order, and holds no lock. Objects that cannot be decoded are left
// out, save for Get, which says so. A Lister is a value, safe for concurrent
// use; it never blocks and never asks the server.
type Lister[T Object] struct{ v *view[T] }

// view is what a Lister looks at, and through.
type view[T Object] struct {
	store    *Indexer[T]
	scopes   *scopeSet                   // nil: all
	covers   func(namespace string) bool // nil: every namespace
	synced   func() bool                 // nil: yes
	resource func() schema.GroupResource // for NotFound; nil: the kind stands in
}

func newLister[T Object](v view[T]) Lister[T] { return Lister[T]{v: &v} }

// QueryOptions choose objects for List: those that match everything that is
// set. Zero: all.
type QueryOptions struct {
	Namespace  string          // empty: all
	Selector   labels.Selector // nil: all
	Index      string          // empty: no index
	IndexValue string          // with Index
}

// Get returns the object of key, or a NotFound of apierrors, an
// *UndecodableError, an *OutOfScopeError when key's namespace is not watched,
// or a *NotSyncedError when the first list has not arrived and the object is
// not known.
func (l Lister[T]) Get(key Key) (T, error) {
	var none T
	if l.v == nil {
		return none, &NotSyncedError{}
	}
	obj, scopes, err := l.v.store.get(key)
	if scopes.seenBy(l.v.scopes) {
		return obj, err
	}
	return none, l.missing(key)
}

// missing is why there is no object of key.
func (l Lister[T]) missing(key Key) error {
	kind := l.v.store.kind
	switch {
	case l.v.covers != nil && !l.v.covers(key.Namespace):
		return &OutOfScopeError{Kind: kind, Key: key}
	case l.v.synced != nil && !l.v.synced():
		return &NotSyncedError{Kind: kind}
	}
	var resource schema.GroupResource
	if l.v.resource != nil {
		resource = l.v.resource()
	}
	resource.Resource = cmp.Or(resource.Resource, kind.Kind)
	resource.Group = cmp.Or(resource.Group, kind.Group)
	return apierrors.NewNotFound(resource, key.String())
}

// All yields every object.
func (l Lister[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if l.v == nil {
			return
		}
		for r := range l.v.store.view().All() {
			if l.v.sees(r) && !yield(r.object) {
				return
			}
		}
	}
}

func (v *view[T]) sees(r *row[T]) bool { return !r.bad && r.scopes.seenBy(v.scopes) }

// Namespace yields the objects of one namespace; empty: all objects.
func (l Lister[T]) Namespace(namespace string) iter.Seq[T] {
	if namespace == "" {
		return l.All()
	}
	return l.shelf("", namespace)
}

// Select yields the objects whose labels match s; nil: all objects.
func (l Lister[T]) Select(s labels.Selector) iter.Seq[T] { return matching(l.All(), s) }

func matching[T Object](objects iter.Seq[T], s labels.Selector) iter.Seq[T] {
	if s == nil || s.Empty() {
		return objects
	}
	return func(yield func(T) bool) {
		for obj := range objects {
			if s.Matches(labels.Set(obj.GetLabels())) && !yield(obj) {
				return
			}
		}
	}
}

// shelf yields the objects that an index has for a value.
func (l Lister[T]) shelf(index, value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for r := range l.rows(index, value) {
			if !yield(r.object) {
				return
			}
		}
	}
}

func (l Lister[T]) rows(index, value string) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		if l.v == nil {
			return
		}
		rows, positions := l.v.store.lookup(index, value)
		for at := range positions.All() {
			if r := rows.At(int(*at)); l.v.sees(r) && !yield(r) {
				return
			}
		}
	}
}

// ByIndex yields the objects that the named index has for value. It is an
// error when there is no such index.
func (l Lister[T]) ByIndex(name, value string) (iter.Seq[T], error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	return l.shelf(name, value), nil
}

// IndexKeys returns the keys of what ByIndex yields, sorted.
func (l Lister[T]) IndexKeys(name, value string) ([]Key, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	var keys []Key
	for r := range l.rows(name, value) {
		keys = append(keys, r.key)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return keys, nil
}

// Index yields the objects that share a value of the named index with like,
// each once; like itself need not be stored. A panic of the index function is
// an error.
func (l Lister[T]) Index(name string, like T) (iter.Seq[T], error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	values, err := l.v.store.ask(name, like)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return l.shelf(name, values[0]), nil
	}
	return func(yield func(T) bool) {
		rows, positions := l.v.store.lookups(name, values)
		yielded := make(map[uint32]bool)
		for _, p := range positions {
			for at := range p.All() {
				r := rows.At(int(*at))
				if !l.v.sees(r) || yielded[*at] {
					continue
				}
				yielded[*at] = true
				if !yield(r.object) {
					return
				}
			}
		}
	}, nil
}

// IndexValues returns the values under which the named index has an object,
// sorted.
func (l Lister[T]) IndexValues(name string) ([]string, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	values := l.v.store.valuesOf(name, l.v.scopes)
	slices.Sort(values)
	return values, nil
}

func (l Lister[T]) known(index string) error {
	if l.v == nil {
		return fmt.Errorf("read index %q: the Lister is empty; take it from an informer", index)
	}
	if index == "" || l.v.store.find(index) == nil {
		return fmt.Errorf("read index %q of %s: there is no such index; add it with AddIndex", index, l.v.store.kind.Kind)
	}
	return nil
}

// List returns the chosen objects as a slice. It is an error when there is no
// such index.
func (l Lister[T]) List(opts QueryOptions) ([]T, error) {
	objects := l.Namespace(opts.Namespace)
	if opts.Index != "" {
		byIndex, err := l.ByIndex(opts.Index, opts.IndexValue)
		if err != nil {
			return nil, err
		}
		objects = byIndex
		if opts.Namespace != "" {
			objects = func(yield func(T) bool) {
				for r := range l.rows(opts.Index, opts.IndexValue) {
					if r.key.Namespace == opts.Namespace && !yield(r.object) {
						return
					}
				}
			}
		}
	}
	var out []T
	if l.v != nil && opts.Namespace == "" && opts.Index == "" && opts.Selector == nil {
		out = make([]T, 0, l.v.store.Len())
	}
	for obj := range matching(objects, opts.Selector) {
		out = append(out, obj)
	}
	return out, nil
}

// ask is the values that the named index gives for obj.
func (x *Indexer[T]) ask(name string, obj T) ([]string, error) {
	return x.find(name).valuesOf(x.kind.Kind, KeyOf(obj), obj)
}

// lookups is lookup of several values, at one moment.
func (x *Indexer[T]) lookups(name string, values []string) (rows vector.View[row[T]], positions []vector.View[uint32]) {
	i := x.find(name)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, v := range values {
		if b := i.buckets[v]; b != nil {
			positions = append(positions, b.rows.View())
		}
	}
	return x.mu.rows.View(), positions
}
