// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import "github.com/flyball-dev/flyball/kube"

// Notes of the informer about an item of a list or watch.
type Notes[T kube.Object] struct {
	// Anomaly is how the item differs from the request.
	Anomaly Anomaly
	// Raw is the encoded object, kept until it is transformed.
	Raw []byte
	// Refused is the object that the transform refused, or nil.
	Refused T
}

// ScopeID numbers the watch scopes of one informer, from 0.
type ScopeID uint32
