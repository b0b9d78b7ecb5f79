// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WriteEffect is the effect of a write on the object.
type WriteEffect uint8

const (
	// Stored: Object is the state after create, update, patch or apply, or
	// after a delete that waits for finalizers or the grace period.
	Stored WriteEffect = iota + 1
	// Removed: the object of this UID is gone.
	Removed
	// Touched: the object may have changed, and its state is not known: the
	// answer was lost, or does not show the object, as for a Scale or an Eviction.
	Touched
)

// Written is the effect of a write of this process. Dry runs are never reported.
type Written struct {
	Kind   schema.GroupVersionKind
	Effect WriteEffect
	// Key of the object. Of a Touched write without a name: all objects of the namespace
	// may have changed.
	Key Key
	UID types.UID
	// Version in the answer; 0: unknown.
	Version Version
	// Object of a Stored write, in any representation. The informer makes a
	// copy if it keeps it.
	Object Object
	// Decode decodes the answer that Object was decoded from into an empty object.
	// Informers of another Go type use it, because the type of Object may lack fields of
	// the answer. Nil, or an error: they read the object from the server instead.
	Decode func(into Object) error
}
