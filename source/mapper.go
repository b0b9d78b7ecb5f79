// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"iter"

	"github.com/flyball-dev/flyball/kube"
)

// Mapper returns the keys affected by one state of an object. Kind calls it for
// the old and for the new state, and adds each key once. It must not block, nor
// modify the object.
type Mapper[K comparable] func(obj kube.Object) iter.Seq[K]

// Self maps an object to its own key.
func Self(obj kube.Object) iter.Seq[Key] {
	key := kube.KeyOf(obj)
	return func(yield func(Key) bool) { yield(key) }
}
