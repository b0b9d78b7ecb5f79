// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Undecodable is an object in quarantine: it exists but cannot be decoded, or
// the informer's transform refuses it. It is shared and must not be modified.
type Undecodable struct {
	Key     Key
	UID     types.UID
	Version Version
	// Metadata of the object; nil if it cannot be decoded either.
	Metadata *metav1.PartialObjectMetadata
	// Since is when the key's quarantine began, perhaps with an earlier
	// version.
	Since time.Time
	// Err is the *UndecodableError that Get of the key returns.
	Err error

	refused Object // by the transform; nil: it is none
}

// NewRefused returns u, whose decoded object is original and is refused by the
// transform.
func NewRefused(u Undecodable, original Object) *Undecodable {
	u.refused = original
	return &u
}

// RefusedObject returns the decoded object of u that the transform refuses; nil: it does
// not. It is a function, since users see the methods of Undecodable.
func RefusedObject(u *Undecodable) Object { return u.refused }

// Notes of the informer about an item of a list or watch.
type Notes[T Object] struct {
	// Anomaly is how the item differs from the request.
	Anomaly Anomaly
	// Raw is the encoded object, kept until it is transformed.
	Raw []byte
	// Refused is the object that the transform refused, or nil.
	Refused T
}

func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
