// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Undecodable is an object in quarantine: it exists, but what the server holds
// cannot be decoded, or the informer's transform refuses it. It is shared and
// must not be changed.
type Undecodable struct {
	Key     Key
	UID     types.UID
	Version Version
	// Metadata of the object; nil when it cannot be read in full either.
	Metadata *metav1.PartialObjectMetadata
	// Since when the key is in quarantine, with this version or another.
	Since time.Time
	// Err says why: the *UndecodableError that Get of the key returns.
	Err error

	Original any // what the transform refuses, as it was decoded; nil: it does not
}

func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
