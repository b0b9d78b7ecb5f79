// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"iter"
	"slices"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Mapped is Kind with a function: f returns the keys affected by one state of
// an object. It is called for the old and the new state, so a key that only the
// old state leads to is not lost, and for an undecodable object with the last
// decodable state, if any. f must not block, nor modify the object. Do lookups
// with an index of a Lister, which is cheap to read here.
func Mapped[T kube.Object, K comparable](i *informer.SharedInformer[T], f func(obj T) []K, preds ...Predicate) *KindSource[T, K] {
	if f == nil {
		return newKind[T, K](i, nil, preds, errors.New("the mapping function is nil; give Mapped a func that names the keys of an object"))
	}
	return newKind(i, func(obj kube.Object) iter.Seq[K] {
		typed, ok := obj.(T)
		if !ok {
			return func(func(K) bool) {}
		}
		return slices.Values(f(typed))
	}, preds, nil)
}
