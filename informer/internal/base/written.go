// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

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
	// Touched: the object has changed, but the answer has another kind (Scale,
	// Eviction), so at most its Version is known.
	Touched
)

// Written is the API server's answer to a write of this process. Dry runs are
// never reported.
type Written struct {
	Kind   schema.GroupVersionKind
	Effect WriteEffect
	Key    Key
	UID    types.UID
	// Version in the answer; 0: unknown.
	Version Version
	// Object of a Stored write, in any representation. The informer makes a
	// copy if it keeps it.
	Object Object
}
