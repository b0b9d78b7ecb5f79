// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WriteEffect says what an answered write did to the object.
type WriteEffect uint8

const (
	// Stored: Object is the state after create, update, patch or apply, or
	// after a delete that left it waiting for finalizers or its grace period.
	Stored WriteEffect = iota + 1
	// Removed: the object of this UID is gone.
	Removed
	// Touched: the object has changed, but the answer is of another kind
	// (Scale, Eviction): only its Version may be known.
	Touched
)

// Written is what the API server answered to a write of this process. Dry runs
// are never reported.
type Written struct {
	Kind   schema.GroupVersionKind
	Effect WriteEffect
	Key    Key
	UID    types.UID
	// Version of the answer; 0: unknown.
	Version Version
	// Object of a Stored write, of any representation (typed, unstructured). The
	// informer keeps a copy of its own where it has to.
	Object Object
}
