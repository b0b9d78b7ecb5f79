// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"

	"github.com/flyball-dev/flyball/informer"
)

// Object is a Func that reads the key's object and hands it to f. An object that is
// not there is done: what belongs to it goes by its owner references, or by
// WithFinalizer. One that cannot be decoded, or that the lister does not cover, is a
// terminal error: a later version, or another scope, brings a new event. So is a key
// with a namespace of a cluster-scoped kind, or without one of a namespaced kind.
//
// The object is shared and must not be changed; informer.Copy gives one's own. It
// may be about to be deleted: then its deletionTimestamp is set.
func Object[T informer.Object](lister informer.Lister[T], f func(ctx context.Context, obj T) (Result, error)) Func[Key] {
	if f == nil {
		return nil // New says so
	}
	return func(ctx context.Context, key Key) (Result, error) {
		obj, err := lister.Get(key)
		if err != nil {
			return Result{}, unreadable(err)
		}
		return f(ctx, obj)
	}
}

// unreadable is what follows when a Lister has no object to give.
func unreadable(err error) error {
	if _, ok := errors.AsType[*informer.UndecodableError](err); ok {
		return Terminal(err)
	}
	if _, ok := errors.AsType[*informer.OutOfScopeError](err); ok {
		return Terminal(err)
	}
	if _, ok := errors.AsType[*informer.NamespaceError](err); ok {
		return Terminal(err)
	}
	return IgnoreNotFound(err)
}
