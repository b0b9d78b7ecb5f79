// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
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
}
