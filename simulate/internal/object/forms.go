// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"sync/atomic"
)

// Encoding is an object in one form of one kind. Those of an object are a list.
type Encoding struct {
	Kind    any // that the form is of
	Form    ContentForm
	Size    int                    // of the content, which stays known
	Content atomic.Pointer[[]byte] // nil: given up
	Next    *Encoding
}

// ContentForm is what an object's content is written in.
type ContentForm struct {
	Protobuf bool
	As       string // of metadata alone
	Version  string
}

// In is the encoding of the list that begins with e in a form; nil: there is none.
func (e *Encoding) In(kind any, form ContentForm) *Encoding {
	for e != nil && (e.Kind != kind || e.Form != form) {
		e = e.Next
	}
	return e
}

// Kept is the content, if it is not given up.
func (e *Encoding) Kept() []byte {
	if e == nil {
		return nil
	}
	if content := e.Content.Load(); content != nil {
		return *content
	}
	return nil
}
