// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package origin tells copies of one decoded object from objects that were
// decoded apart, even if they are of the same version: one may lack fields that
// the other has.
//
// Copies, deep ones too, share the memory of strings, which are immutable. An
// informer that drops fields gives each object a resourceVersion in memory of
// its own, so no whole object shares it.
package origin

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Same reports whether a and b are copies of one object as it was decoded. It
// is false for a copy that was encoded and decoded in between.
func Same(a, b metav1.Object) bool {
	v, w := a.GetResourceVersion(), b.GetResourceVersion()
	return len(v) == len(w) && v != "" && unsafe.StringData(v) == unsafe.StringData(w)
}
