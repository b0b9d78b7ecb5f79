// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "k8s.io/apimachinery/pkg/types"

// change is what one step did to one object, as the Indexer shows it.
type change[T Object] struct {
	key Key
	// old was shown to the scopes in before. No scope in before: there was none.
	old    T
	oldUID types.UID
	before *scopeSet
	// new is shown to the scopes in after. No scope in after: the object is
	// gone, and new is the last state it is known to have had.
	new    T
	newUID types.UID
	after  *scopeSet
	// same: the object did not change, only the scopes that hold it.
	same bool
	// resync: nothing changed, the object is given again.
	resync bool
	// finalStateUnknown and leftScope say more of an object that is gone.
	finalStateUnknown, leftScope bool
}

// observed is the answer to an own write, in the informer's representation.
type observed[T Object] struct {
	Effect  WriteEffect
	Key     Key
	UID     types.UID
	Version Version // 0: unknown
	Object  T       // of a Stored write, transformed
	// In are the scopes that the object matches. Unsure are those whose selector
	// cannot be evaluated here. It is outside of all others.
	In, Unsure *scopeSet
}
