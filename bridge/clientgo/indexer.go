// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// ErrReadOnly is returned by the writing methods of a cache.Store.
var ErrReadOnly = errors.New("the store is read-only: the informer alone writes to it; write to the API server and the store follows")

// indexer presents the read interface of an informer as a cache.Indexer.
type indexer[T kube.Object] struct {
	informer *informer.SharedInformer[T]
	lister   informer.Lister[T]
	mu       struct {
		sync.Mutex
		indexers cache.Indexers
	}
}

func newIndexer[T kube.Object](i *informer.SharedInformer[T]) *indexer[T] {
	x := &indexer[T]{informer: i, lister: i.Lister()}
	x.mu.indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return x
}

// keyOf returns key in client-go's form.
func keyOf(key kube.Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

func (x *indexer[T]) readOnly(what string) error {
	return fmt.Errorf("%s %s: %w", what, x.informer, ErrReadOnly)
}

// The writing methods.

func (x *indexer[T]) Add(any) error               { return x.readOnly("add to the store of") }
func (x *indexer[T]) Update(any) error            { return x.readOnly("update the store of") }
func (x *indexer[T]) Delete(any) error            { return x.readOnly("delete from the store of") }
func (x *indexer[T]) Replace([]any, string) error { return x.readOnly("replace the store of") }
func (x *indexer[T]) Bookmark(string)             {}
func (x *indexer[T]) Resync() error               { return nil }

func (x *indexer[T]) LastStoreSyncResourceVersion() string { return x.informer.Reached().String() }

func (x *indexer[T]) List() []any {
	objects, err := x.lister.List(informer.QueryOptions{Unsynced: true})
	if err != nil {
		return []any{} // no such error without an index
	}
	out := make([]any, len(objects))
	for i, obj := range objects {
		out[i] = obj
	}
	return out
}

func (x *indexer[T]) ListKeys() []string {
	var keys []string
	for obj := range x.lister.All() {
		keys = append(keys, keyOf(kube.KeyOf(obj)))
	}
	return keys
}

func (x *indexer[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, cache.KeyError{Obj: obj, Err: err}
	}
	return x.GetByKey(key)
}

func (x *indexer[T]) GetByKey(key string) (item any, exists bool, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, nil // no object has such a key
	}
	obj, err := x.lister.Get(kube.Key{Namespace: namespace, Name: name})
	switch {
	case err == nil:
		return obj, true, nil
	case absent(err):
		return nil, false, nil
	}
	if u, ok := errors.AsType[*kube.UndecodableError](err); ok && u.Refused && any(obj) != any(*new(T)) {
		return obj, true, nil // client-go too keeps what its transform accepted
	}
	return nil, false, err
}

// absent reports whether client-go would treat err as a missing object.
func absent(err error) bool {
	_, outOfScope := errors.AsType[*kube.OutOfScopeError](err)
	_, notSynced := errors.AsType[*kube.NotSyncedError](err)
	_, misplaced := errors.AsType[*kube.NamespaceError](err)
	return outOfScope || notSynced || misplaced || apierrors.IsNotFound(err)
}

func (x *indexer[T]) Index(name string, obj any) ([]any, error) {
	f := x.find(name)
	if f == nil {
		like, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("read index %q of %s: the object is a %T", name, x.informer, obj)
		}
		values, err := x.lister.IndexValuesOf(name, like)
		if err != nil {
			return nil, err
		}
		return x.byIndex(name, values)
	}
	values, err := f(obj)
	if err != nil {
		return nil, fmt.Errorf("read index %q of %s: %w", name, x.informer, err)
	}
	return x.byIndex(name, values)
}

func (x *indexer[T]) ByIndex(name, value string) ([]any, error) {
	return x.byIndex(name, []string{value})
}

// byIndex returns what is known, even before the first list, as client-go does.
func (x *indexer[T]) byIndex(name string, values []string) ([]any, error) {
	out := make([]any, 0, 16)
	if len(values) == 0 {
		return out, nil
	}
	if name != cache.NamespaceIndex {
		objects, err := x.lister.List(informer.QueryOptions{Index: name, IndexValues: values, Unsynced: true})
		for _, obj := range objects {
			out = append(out, obj)
		}
		return out, err
	}
	for _, namespace := range values {
		if namespace == "" {
			for obj := range x.lister.All() {
				if obj.GetNamespace() == "" {
					out = append(out, obj)
				}
			}
			continue
		}
		objects, err := x.lister.List(informer.QueryOptions{Namespace: namespace, Unsynced: true})
		if err != nil {
			continue // client-go returns nothing in this case
		}
		for _, obj := range objects {
			out = append(out, obj)
		}
	}
	return out, nil
}

func (x *indexer[T]) IndexKeys(name, value string) ([]string, error) {
	objects, err := x.byIndex(name, []string{value})
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, obj := range objects {
		keys = append(keys, keyOf(kube.KeyOf(obj.(T))))
	}
	return keys, nil
}

func (x *indexer[T]) ListIndexFuncValues(name string) []string {
	if name == cache.NamespaceIndex {
		namespaces := make(map[string]bool)
		for obj := range x.lister.All() {
			namespaces[obj.GetNamespace()] = true
		}
		return slices.Collect(maps.Keys(namespaces))
	}
	values, err := x.lister.IndexValues(name)
	if err != nil {
		return nil // client-go's result for a missing index
	}
	return values
}

func (x *indexer[T]) find(name string) cache.IndexFunc {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.indexers[name]
}

func (x *indexer[T]) GetIndexers() cache.Indexers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.mu.indexers)
}

// AddIndexers adds indexes over present and future objects.
func (x *indexer[T]) AddIndexers(indexers cache.Indexers) error {
	if isClosed(x.informer.Ended()) {
		return fmt.Errorf("add indexers to the informer of %s: it has stopped already", x.informer)
	}
	names := slices.Sorted(maps.Keys(indexers))
	for _, name := range names {
		_, err := x.lister.IndexValues(name)
		if err == nil || x.find(name) != nil {
			return fmt.Errorf("add indexers to the informer of %s: indexer conflict: there is an index %q already", x.informer, name)
		}
		if name == "" || indexers[name] == nil {
			return fmt.Errorf("add indexers to the informer of %s: index %q needs a name and a function", x.informer, name)
		}
	}
	var first error
	for _, name := range names {
		err := x.informer.AddIndex(name, indexFunc[T](indexers[name]))
		first = cmp.Or(first, err)
		if _, missing := x.lister.IndexValues(name); missing == nil {
			x.remember(name, indexers[name]) // even if it panicked on an object
		}
	}
	return first
}

func (x *indexer[T]) remember(name string, f cache.IndexFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.indexers[name] = f
}

// indexFunc adapts f to flyball, whose index functions return no error: an
// error becomes a panic, which the informer recovers, counts and logs.
func indexFunc[T kube.Object](f cache.IndexFunc) informer.IndexFunc[T] {
	return func(obj T) []string {
		values, err := f(obj)
		if err != nil {
			panic(err)
		}
		return values
	}
}

var _ cache.Indexer = (*indexer[*metav1.PartialObjectMetadata])(nil)
