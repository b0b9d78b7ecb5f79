// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"iter"

	"github.com/flyball-dev/flyball/informer"
)

// Mapper returns the keys affected by one state of an object. Kind calls it for
// the old and for the new state, and adds each key once. It must not block, nor
// modify the object.
type Mapper[K comparable] func(obj informer.Object) iter.Seq[K]

// Self maps an object to its own key.
func Self(obj informer.Object) iter.Seq[Key] {
	key := informer.KeyOf(obj)
	return func(yield func(Key) bool) { yield(key) }
}
