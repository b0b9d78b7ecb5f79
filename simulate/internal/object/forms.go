// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"sync/atomic"
)

// Encoding is an object in one form of one kind. The encodings of an object are a list.
type Encoding struct {
	Kind    any // whose form it is
	Form    ContentForm
	Size    int                    // of the content; it stays known
	Content atomic.Pointer[[]byte] // nil: dropped
	Next    *Encoding
}

// ContentForm is the form in which an object's content is encoded.
type ContentForm struct {
	Protobuf bool
	As       string // for metadata alone
	Version  string
}

// In returns the encoding in a form from the list that begins with e, or nil if there is
// none.
func (e *Encoding) In(kind any, form ContentForm) *Encoding {
	for e != nil && (e.Kind != kind || e.Form != form) {
		e = e.Next
	}
	return e
}

// Kept returns the content if it has not been dropped.
func (e *Encoding) Kept() []byte {
	if e == nil {
		return nil
	}
	if content := e.Content.Load(); content != nil {
		return *content
	}
	return nil
}
