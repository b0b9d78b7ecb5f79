// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/store"
)

// Lister reads an informer's objects, those of its scopes. What it returns is
// shared by all readers and must not be changed: Copy it first. Each loop over
// an iterator sees the objects as they were when the loop began, in no
// particular order, and holds no lock. Objects that cannot be decoded are left
// out, save for Get, which says so, and Undecodable, which lists them; what the
// transform refuses stays in its last state that it has accepted. A Lister
// is a value, safe for concurrent use; it never blocks and never asks the server.
type Lister[T Object] struct{ v *view }

// view is what a Lister looks at, and through.
type view struct {
	store    *store.Indexer[Object]
	resource func() schema.GroupResource // for NotFound; nil: the kind stands in
	// namespaced says whether objects of the kind live in namespaces, and whether
	// that is known; nil: it never is.
	namespaced func() (namespaced, known bool)
	sight      *atomic.Pointer[sight]
	guard      *mutationGuard // notes what is read; nil: none
}

func newLister[T Object](store *store.Indexer[Object], resource func() schema.GroupResource, namespaced func() (bool, bool), sight *atomic.Pointer[sight], guard *mutationGuard) Lister[T] {
	return Lister[T]{&view{store, resource, namespaced, sight, guard}}
}

// look reads what is there and through what it is seen, both of one moment:
// the number of a scope means nothing beyond the sight that has it.
func look[R any](through *atomic.Pointer[sight], read func() R) (*sight, R) {
	for {
		s := through.Load()
		if r := read(); through.Load() == s {
			return s, r
		}
	}
}

// QueryOptions choose objects for List: those that match everything that is
// set. Zero: all.
type QueryOptions struct {
	Namespace  string          // empty: all
	Selector   labels.Selector // nil: all
	Index      string          // empty: no index
	IndexValue string          // with Index
	// IndexValues, with Index and in place of IndexValue, have the objects that have
	// any of these values, each once.
	IndexValues []string
	// Unsynced also reads while a first list has not arrived: what is known so far,
	// which may be nothing or a part. Without it that is a *NotSyncedError.
	Unsynced bool
}

// Get returns the object of key, or a NotFound of apierrors, an
// *UndecodableError (with the last state that the transform has accepted, where
// it is the transform that refuses the object, else with no object), a *NamespaceError when key has a namespace and the kind is
// cluster-scoped, or the reverse, an *OutOfScopeError when key's namespace is not
// watched, a *NotSyncedError when the first list has not arrived and the object is
// not known, or a *ReleasedError.
func (l Lister[T]) Get(key Key) (T, error) {
	var none T
	if l.v == nil {
		return none, &NotSyncedError{}
	}
	for {
		s := l.v.sight.Load()
		obj, scopes, err := l.v.store.Get(key)
		if l.v.sight.Load() != s {
			continue
		}
		if scopes.SeenBy(s.scopes) {
			if l.v.guard != nil && !base.IsNil(obj) {
				l.v.guard.touch(obj)
			}
			return as[T](obj), err
		}
		return none, l.missing(key, s)
	}
}

// missing is why there is no object of key.
func (l Lister[T]) missing(key Key, s *sight) error {
	kind := l.v.store.Kind
	switch {
	case s.gone != nil:
		return s.gone
	case l.v.misplaced(key.Namespace):
		return &NamespaceError{Kind: kind, Key: key}
	case !s.covers(key.Namespace):
		return &OutOfScopeError{Kind: kind, Key: key}
	case !s.isSynced():
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

// misplaced: no object of the kind can have the namespace, whatever its name.
func (v *view) misplaced(namespace string) bool {
	if v.namespaced == nil {
		return false
	}
	namespaced, known := v.namespaced()
	return known && namespaced == (namespace == "")
}

// All yields every object that is known: nothing before the first list, and
// nothing of an informer that was released. It is for code that has waited for
// the sync, as a reconciler does; List says why there is nothing.
func (l Lister[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if l.v == nil {
			return
		}
		s, rows := look(l.v.sight, l.v.store.View)
		for r := range rows.All() {
			if l.v.sees(s, r) && !yield(as[T](r.Object)) {
				return
			}
		}
	}
}

// sees also notes that the row's object is read.
func (v *view) sees(s *sight, r *store.Row[Object]) bool {
	if !r.Readable() || !r.Scopes.SeenBy(s.scopes) {
		return false
	}
	if v.guard != nil {
		v.guard.touch(r.Object)
	}
	return true
}

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
			if !yield(as[T](r.Object)) {
				return
			}
		}
	}
}

func (l Lister[T]) rows(index, value string) iter.Seq[*store.Row[Object]] {
	return func(yield func(*store.Row[Object]) bool) {
		if l.v == nil {
			return
		}
		s, found := look(l.v.sight, func() store.Found[Object] { return l.v.store.Lookup(index, value) })
		for at := range found.Positions.All() {
			if r := found.Rows.At(int(*at)); l.v.sees(s, r) && !yield(r) {
				return
			}
		}
	}
}

// ByIndex yields the objects that the named index has for value. Its errors are
// those of List.
func (l Lister[T]) ByIndex(name, value string) (iter.Seq[T], error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	if err := l.readable("", false); err != nil {
		return nil, err
	}
	return l.shelf(name, value), nil
}

// IndexValuesOf returns the values that the named index gives for obj, which need
// not be stored. A panic of the index function is an error.
func (l Lister[T]) IndexValuesOf(name string, obj T) ([]string, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	return l.v.store.Ask(name, object(obj))
}

// any yields the objects that the named index has for one of values, each once,
// all of one moment.
func (l Lister[T]) any(name string, values []string) iter.Seq[*store.Row[Object]] {
	return func(yield func(*store.Row[Object]) bool) {
		s, all := look(l.v.sight, func() []store.Found[Object] { return l.v.store.Lookups(name, values) })
		yielded := make(map[uint32]bool)
		for _, f := range all {
			for at := range f.Positions.All() {
				r := f.Rows.At(int(*at))
				if !l.v.sees(s, r) || yielded[*at] {
					continue
				}
				yielded[*at] = true
				if !yield(r) {
					return
				}
			}
		}
	}
}

// IndexValues returns the values under which the named index has an object,
// sorted.
func (l Lister[T]) IndexValues(name string) ([]string, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	_, values := look(l.v.sight, func() []string { return l.v.store.ValuesOf(name, l.v.sight.Load().scopes) })
	slices.Sort(values)
	return values, nil
}

func (l Lister[T]) known(index string) error {
	if l.v == nil {
		return fmt.Errorf("read index %q: the Lister is empty; take it from an informer", index)
	}
	if gone := l.v.sight.Load().gone; gone != nil {
		return gone
	}
	if index == "" || l.v.store.Find(index) == nil {
		return fmt.Errorf("read index %q of %s: there is no such index; add it with AddIndex", index, l.v.store.Kind.Kind)
	}
	return nil
}

// List returns the chosen objects. It never takes ignorance for absence: before
// the first list of each scope it is a *NotSyncedError, unless opts say Unsynced.
// It is an *OutOfScopeError when opts name a namespace that is not watched, a
// *NamespaceError when they name one of a cluster-scoped kind, a *ReleasedError
// when the informer was released, and an error when there is no such index.
func (l Lister[T]) List(opts QueryOptions) ([]T, error) {
	if err := l.readable(opts.Namespace, opts.Unsynced); err != nil {
		return nil, err
	}
	var rows iter.Seq[*store.Row[Object]]
	switch {
	case opts.Index == "" && opts.Namespace == "" && opts.Selector == nil:
		out := make([]T, 0, l.v.store.Len())
		for obj := range l.All() {
			out = append(out, obj)
		}
		return out, nil
	case opts.Index == "" && opts.Namespace == "":
		return slices.Collect(matching(l.All(), opts.Selector)), nil
	case opts.Index == "":
		return slices.Collect(matching(l.shelf("", opts.Namespace), opts.Selector)), nil
	}
	if err := l.known(opts.Index); err != nil {
		return nil, err
	}
	switch {
	case opts.IndexValues == nil:
		rows = l.rows(opts.Index, opts.IndexValue)
	case len(opts.IndexValues) == 1:
		rows = l.rows(opts.Index, opts.IndexValues[0])
	default:
		rows = l.any(opts.Index, opts.IndexValues)
	}
	return slices.Collect(matching(func(yield func(T) bool) {
		for r := range rows {
			if (opts.Namespace == "" || r.Key.Namespace == opts.Namespace) && !yield(as[T](r.Object)) {
				return
			}
		}
	}, opts.Selector)), nil
}

// readable is why objects of namespace cannot be read, an empty one being all
// namespaces. partly: what is known before the first list is wanted too.
func (l Lister[T]) readable(namespace string, partly bool) error {
	if l.v == nil {
		return &NotSyncedError{}
	}
	s, key := l.v.sight.Load(), Key{Namespace: namespace}
	switch {
	case s.gone != nil:
		return s.gone
	case namespace != "" && l.v.misplaced(namespace):
		return &NamespaceError{Kind: l.v.store.Kind, Key: key}
	case namespace != "" && !s.covers(namespace):
		return &OutOfScopeError{Kind: l.v.store.Kind, Key: key}
	case !partly && !s.isSynced():
		return &NotSyncedError{Kind: l.v.store.Kind}
	}
	return nil
}

// Undecodable yields the objects of the Lister's scopes that cannot be decoded,
// as they were at one moment, when the loop began, sorted by key.
func (l Lister[T]) Undecodable() iter.Seq[Undecodable] {
	return func(yield func(Undecodable) bool) {
		if l.v == nil {
			return
		}
		_, entries := look(l.v.sight, func() []*Undecodable { return l.v.store.Quarantine(l.v.sight.Load().scopes) })
		for _, u := range entries {
			if !yield(*u) {
				return
			}
		}
	}
}

// sight is what the Listers of a handle see. It is immutable: another one takes
// its place.
type sight struct {
	scopes     *store.ScopeSet // nil: all
	namespaces map[string]bool // that are watched; nil: all
	synced     <-chan struct{} // nil: it is
	gone       error           // there is nothing to see
}

func (s *sight) covers(namespace string) bool { return s.namespaces == nil || s.namespaces[namespace] }

func (s *sight) isSynced() bool {
	if s.synced == nil {
		return true
	}
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}
