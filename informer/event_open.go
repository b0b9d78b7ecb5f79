// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// isPacked reports whether the mutation detector does not know obj yet: it is
// told of what is packed when that is opened.
func isPacked(obj kube.Object) bool {
	_, ok := obj.(*compact.Entry)
	return ok
}

// open returns e with the objects that are packed in it.
func open(e kube.Event[kube.Object]) (kube.Event[kube.Object], error) {
	var err error
	if isPacked(e.Old) {
		if e.Old, err = compact.Open(e.Old); err != nil {
			return e, err
		}
	}
	if isPacked(e.New) {
		e.New, err = compact.Open(e.New)
	}
	return e, err
}
