// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"iter"
	"slices"

	"github.com/flyball-dev/flyball/informer"
)

// Mapped is Kind with a function of your own: f names the keys that one state of
// an object matters to. It is asked for the old and the new state, so a key that
// only the old one names is not lost. It must not block, nor change the object.
// Of an object that cannot be decoded it is asked for the last state that could
// be, if there was one. Lookups belong in an index of a Lister, which is cheap to ask here.
func Mapped[T informer.Object, K comparable](i *informer.SharedInformer[T], f func(obj T) []K, preds ...Predicate) *KindSource[T, K] {
	if f == nil {
		return newKind[T, K](i, nil, preds, errors.New("the mapping function is nil; give Mapped a func that names the keys of an object"))
	}
	return newKind(i, func(obj informer.Object) iter.Seq[K] {
		typed, ok := obj.(T)
		if !ok {
			return func(func(K) bool) {}
		}
		return slices.Values(f(typed))
	}, preds, nil)
}
