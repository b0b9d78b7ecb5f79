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
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// Lister reads the objects of an informer's scopes. They are shared by all
// readers and must not be modified: Copy them first. Each loop over an iterator
// sees the objects as of its start, in no particular order, and holds no lock.
// Undecodable objects are omitted, except that Get returns an error for them
// and Undecodable lists them; an object that the transform refuses stays in its
// last accepted state. A Lister is a value, safe for concurrent use; it never
// blocks and never asks the server.
type Lister[T kube.Object] struct{ v *view }

// view is what a Lister reads.
type view struct {
	store    *store.Indexer
	resource func() schema.GroupResource // for NotFound; nil: use the kind
	// namespaced reports whether the kind is namespaced, and whether that is
	// known; nil: it never is.
	namespaced func() (namespaced, known bool)
	current    *atomic.Pointer[listerView]
	guard      *mutation.Guard // records reads; nil: none
	unsettled  *unsettledKeys  // nil: every state is known
	packing    *packing        // counts reads; nil: not needed
	usage      *usage          // records reads; nil: not needed
}

func newLister[T kube.Object](store *store.Indexer, resource func() schema.GroupResource, namespaced func() (bool, bool), current *atomic.Pointer[listerView], guard *mutation.Guard, unsettled *unsettledKeys) Lister[T] {
	return Lister[T]{&view{store, resource, namespaced, current, guard, unsettled, nil, nil}}
}

// look reads the store and the listerView at the same moment: a scope number is
// valid only with its listerView.
func look[R any](through *atomic.Pointer[listerView], read func() R) (*listerView, R) {
	for {
		s := through.Load()
		if r := read(); through.Load() == s {
			return s, r
		}
	}
}

// QueryOptions select objects for List: those that match all fields that are
// set. Zero: all.
type QueryOptions struct {
	Namespace  string          // empty: all
	Selector   labels.Selector // nil: all
	Index      string          // empty: no index
	IndexValue string          // used with Index
	// IndexValues, used with Index in place of IndexValue, selects objects with
	// any of these values, each once.
	IndexValues []string
	// Unsynced allows reads before the first list has arrived, and while the
	// effect of an own write is not known: they return what is known, possibly
	// nothing. Otherwise they return a *NotSyncedError or a *NotSettledError.
	Unsynced bool
}

// Get returns the object of key. Its errors are:
//
//   - NotFound of apierrors
//   - *UndecodableError, with the last accepted state if the transform refuses
//     the object, else with no object
//   - *NamespaceError if key has a namespace and the kind is cluster-scoped, or
//     the reverse
//   - *OutOfScopeError if the namespace is not watched
//   - *NotSyncedError if the first list has not arrived and the object is not
//     known
//   - *NotSettledError if the effect of an own write on the object is not known
//   - *ReleasedError
func (l Lister[T]) Get(key kube.Key) (T, error) {
	var none T
	if l.v == nil {
		return none, &kube.NotSyncedError{}
	}
	l.v.usage.touch()
	for {
		s := l.v.current.Load()
		if pending := l.v.pending(key); pending != nil && s.gone == nil && s.covers(key.Namespace) {
			return none, pending
		}
		synced := s.isSynced() // before the read: a list that arrives after it may have the object
		obj, scopes, err := l.v.store.Get(key)
		if l.v.current.Load() != s {
			continue
		}
		if scopes.SeenBy(s.scopes) {
			return l.opened(key, obj, err)
		}
		return none, l.missing(key, s, synced)
	}
}

// opened returns what the store has of key, decoded.
func (l Lister[T]) opened(key kube.Key, stored kube.Object, err error) (T, error) {
	if l.v.packing != nil && !compact.IsPacked(stored) {
		l.v.packing.recordRead()
	}
	obj, corrupt := compact.Open(stored)
	if corrupt != nil {
		var none T
		return none, &kube.UndecodableError{Kind: l.v.store.Kind, Key: key, Err: corrupt}
	}
	if l.v.guard != nil && !base.IsNil(obj) {
		l.v.guard.Touch(obj)
	}
	return as[T](obj), err
}

// missing returns why there is no object of key. synced is what s was before it was looked for.
func (l Lister[T]) missing(key kube.Key, s *listerView, synced bool) error {
	kind := l.v.store.Kind
	switch {
	case s.gone != nil:
		return s.gone
	case l.v.misplaced(key.Namespace):
		return &kube.NamespaceError{Kind: kind, Key: key}
	case !s.covers(key.Namespace):
		return &kube.OutOfScopeError{Kind: kind, Key: key}
	case !synced:
		return &kube.NotSyncedError{Kind: kind}
	}
	var resource schema.GroupResource
	if l.v.resource != nil {
		resource = l.v.resource()
	}
	resource.Resource = cmp.Or(resource.Resource, kind.Kind)
	resource.Group = cmp.Or(resource.Group, kind.Group)
	return apierrors.NewNotFound(resource, key.String())
}

// pending returns the error of a read of key whose state is not known; nil: it is.
func (v *view) pending(key kube.Key) error {
	if v.unsettled == nil || !v.unsettled.Has(key) {
		return nil
	}
	return &kube.NotSettledError{Kind: v.store.Kind, Key: key, When: func(do func()) func() { return v.unsettled.When(key, do) }}
}

// misplaced reports whether no object of the kind can be in namespace.
func (v *view) misplaced(namespace string) bool {
	if v.namespaced == nil {
		return false
	}
	namespaced, known := v.namespaced()
	return known && namespaced == (namespace == "")
}

// All yields every known object: none before the first list, and none after a
// release, and regardless of own writes whose effect is not known. List returns
// an error instead; use it to decide on what is missing.
func (l Lister[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if l.v == nil {
			return
		}
		l.v.usage.touch()
		s, rows := look(l.v.current, l.v.store.View)
		n := 0
		defer func() { l.v.usage.scanned(n) }()
		for r := range rows.All() {
			if n++; !sees(s, r) {
				continue
			}
			if obj, ok := l.read(r); ok && !yield(obj) {
				return
			}
		}
	}
}

// every yields all rows that the Lister sees.
func (l Lister[T]) every() iter.Seq[*store.Row] {
	return func(yield func(*store.Row) bool) {
		s, rows := look(l.v.current, l.v.store.View)
		n := 0
		defer func() { l.v.usage.scanned(n) }()
		for r := range rows.All() {
			if n++; sees(s, r) && !yield(r) {
				return
			}
		}
	}
}

// sees reports whether s sees the row.
func sees(s *listerView, r *store.Row) bool { return r.Readable() && r.Scopes.SeenBy(s.scopes) }

// objects yields the objects of the rows that the selector matches, if it is not
// nil. What is packed is opened only then, and omitted if it cannot be.
func (l Lister[T]) objects(rows iter.Seq[*store.Row], s labels.Selector) iter.Seq[T] {
	if s != nil && s.Empty() {
		s = nil
	}
	return func(yield func(T) bool) {
		for r := range rows {
			if s != nil && !s.Matches(compact.LabelsOf(r.Object)) {
				continue
			}
			if obj, ok := l.read(r); ok && !yield(obj) {
				return
			}
		}
	}
}

// read returns the object of a row and records the read. Not ok: it is packed
// and cannot be opened.
func (l Lister[T]) read(r *store.Row) (_ T, ok bool) {
	obj, err := compact.Open(r.Object)
	if err == nil && l.v.guard != nil {
		l.v.guard.Touch(obj)
	}
	return as[T](obj), err == nil
}

func (l Lister[T]) rows(index, value string) iter.Seq[*store.Row] {
	return func(yield func(*store.Row) bool) {
		s, found := look(l.v.current, func() store.Found { return l.v.store.Lookup(index, value) })
		for i := range found.Len() {
			if r := found.At(i); sees(s, r) && !yield(r) {
				return
			}
		}
	}
}

// ByIndex yields the objects of value in the named index, as of the call. Its
// errors are those of List.
func (l Lister[T]) ByIndex(name, value string) (iter.Seq[T], error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	for {
		s, err := l.readable("", false)
		if err != nil {
			return nil, err
		}
		found := l.v.store.Lookup(name, value)
		if l.v.current.Load() != s {
			continue
		}
		return func(yield func(T) bool) { // objects of rows would take four closures
			for i := range found.Len() {
				r := found.At(i)
				if !sees(s, r) {
					continue
				}
				if obj, ok := l.read(r); ok && !yield(obj) {
					return
				}
			}
		}, nil
	}
}

// IndexValuesOf returns the values of obj in the named index; obj need not be
// stored. A panic of the index function is an error.
func (l Lister[T]) IndexValuesOf(name string, obj T) ([]string, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	return l.v.store.Ask(name, object(obj))
}

// any yields the objects with any of values in the named index, each once, all
// of one moment.
func (l Lister[T]) any(name string, values []string) iter.Seq[*store.Row] {
	return func(yield func(*store.Row) bool) {
		s, all := look(l.v.current, func() []store.Found { return l.v.store.Lookups(name, values) })
		yielded := make(map[uint32]bool)
		for _, f := range all {
			for i := range f.Len() {
				r, at := f.At(i), *f.Positions.At(i)
				if !sees(s, r) || yielded[at] {
					continue
				}
				yielded[at] = true
				if !yield(r) {
					return
				}
			}
		}
	}
}

// IndexValues returns the values under which the named index has an object that
// is known, sorted: none before the first list, and none after a release.
func (l Lister[T]) IndexValues(name string) ([]string, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	_, values := look(l.v.current, func() []string { return l.v.store.ValuesOf(name, l.v.current.Load().scopes) })
	slices.Sort(values)
	return values, nil
}

func (l Lister[T]) known(index string) error {
	if l.v == nil {
		return fmt.Errorf("read index %q: the Lister is empty; take it from an informer", index)
	}
	l.v.usage.touch()
	if gone := l.v.current.Load().gone; gone != nil {
		return gone
	}
	if index == "" || l.v.store.Find(index) == nil {
		return fmt.Errorf("read index %q of %s: there is no such index; add it with AddIndex", index, l.v.store.Kind.Kind)
	}
	return nil
}

// List returns the selected objects. It never returns an incomplete result
// without an error: before the first list of each scope it returns a
// *NotSyncedError, unless opts allow Unsynced, and while the effect of an own
// write on objects of the namespace is not known a *NotSettledError, even if the
// selector would exclude them. Further errors are an *OutOfScopeError for a
// namespace that is not watched, a *NamespaceError for a namespace of a
// cluster-scoped kind, a *ReleasedError after a release, and an error for an
// unknown index.
func (l Lister[T]) List(opts QueryOptions) ([]T, error) {
	for {
		s, err := l.readable(opts.Namespace, opts.Unsynced)
		if err != nil {
			return nil, err
		}
		out, err := l.list(opts)
		if err != nil || l.v.current.Load() == s {
			return out, err
		}
		// The handle has other scopes now, which may lack their first list.
	}
}

// list returns the objects that opts select of those that are known.
func (l Lister[T]) list(opts QueryOptions) ([]T, error) {
	var rows iter.Seq[*store.Row]
	switch {
	case opts.Index == "" && opts.Namespace == "" && opts.Selector == nil:
		out := make([]T, 0, l.v.store.Len())
		for obj := range l.All() {
			out = append(out, obj)
		}
		return out, nil
	case opts.Index == "" && opts.Namespace == "":
		return slices.Collect(l.objects(l.every(), opts.Selector)), nil
	case opts.Index == "":
		return slices.Collect(l.objects(l.rows("", opts.Namespace), opts.Selector)), nil
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
	return slices.Collect(l.objects(func(yield func(*store.Row) bool) {
		for r := range rows {
			if (opts.Namespace == "" || r.Key.Namespace == opts.Namespace) && !yield(r) {
				return
			}
		}
	}, opts.Selector)), nil
}

// readable returns why objects of namespace (empty: all) cannot be read, and the view of which
// that is true. partly: reads before the first list are allowed.
func (l Lister[T]) readable(namespace string, partly bool) (*listerView, error) {
	if l.v == nil {
		return nil, &kube.NotSyncedError{}
	}
	l.v.usage.touch()
	s, key := l.v.current.Load(), kube.Key{Namespace: namespace}
	switch {
	case s.gone != nil:
		return nil, s.gone
	case namespace != "" && l.v.misplaced(namespace):
		return nil, &kube.NamespaceError{Kind: l.v.store.Kind, Key: key}
	case namespace != "" && !s.covers(namespace):
		return nil, &kube.OutOfScopeError{Kind: l.v.store.Kind, Key: key}
	case !partly && !s.isSynced():
		return nil, &kube.NotSyncedError{Kind: l.v.store.Kind}
	}
	if pending := l.v.pending(key); pending != nil && !partly {
		return nil, pending
	}
	return s, nil
}

// Fields returns the sorted Fields of the handle's scopes, nil if all fields are
// kept. What an object lacks apart from them may be set on the server. The
// objects may have more, which another handle keeps.
func (l Lister[T]) Fields() []string {
	if l.v == nil {
		return nil
	}
	return l.v.current.Load().fields.Paths()
}

// Undecodable yields the undecodable objects of the Lister's scopes as of the
// start of the loop, sorted by key.
func (l Lister[T]) Undecodable() iter.Seq[kube.Undecodable] {
	return func(yield func(kube.Undecodable) bool) {
		if l.v == nil {
			return
		}
		_, entries := look(l.v.current, func() []*kube.Undecodable { return l.v.store.Quarantine(l.v.current.Load().scopes) })
		for _, u := range entries {
			if !yield(*u) {
				return
			}
		}
	}
}

// listerView is what the Listers of a handle see. It is immutable and replaced as a
// whole.
type listerView struct {
	scopes     *store.ScopeSet // nil: all
	namespaces map[string]bool // watched; nil: all
	synced     <-chan struct{} // nil: synced
	fields     *fields.Set     // kept of the objects at least; nil: all
	gone       error           // why nothing can be read
}

func (s *listerView) covers(namespace string) bool {
	return s.namespaces == nil || s.namespaces[namespace]
}

func (s *listerView) isSynced() bool {
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
