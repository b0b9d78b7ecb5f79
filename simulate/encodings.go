// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/flyball-dev/flyball/internal/deque"
)

// encodedAtMost is how many bytes of encoded objects a server keeps, as a rule.
const encodedAtMost = 48 << 20

// encodings are the forms of objects that were made last, up to a number of
// bytes, so that an answer to a write, the watches that are told of it and the
// reads that follow share them. Safe for concurrent use.
type encodings struct {
	atMost   int // bytes; 0: encodedAtMost
	messages protoMessages
	zippers  sync.Pool // of *gzip.Writer, each of which has tables of a megabyte

	mu struct {
		sync.Mutex
		held  deque.Deque[*encoding] // the oldest first
		bytes int
	}
}

// zipper is a writer to reset, and to put back among the others.
func (c *encodings) zipper() *gzip.Writer {
	if w, ok := c.zippers.Get().(*gzip.Writer); ok {
		return w
	}
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // of a level that there is
	return w
}

// encoding is an object in one form of one kind. Those of an object are a list.
type encoding struct {
	kind    *Kind
	form    contentForm
	content atomic.Pointer[[]byte] // nil: given up
	next    *encoding
}

// contentForm is what an object's content is written in.
type contentForm struct {
	protobuf bool
	as       string // of metadata alone
	version  string
}

// encoded is the content of an object in a form, made by make if it is not kept.
// Nobody may change it.
func (c *encodings) encoded(obj *object, kind *Kind, form contentForm, make func() ([]byte, error)) ([]byte, error) {
	head := obj.encoded.Load()
	known := head
	for known != nil && (known.kind != kind || known.form != form) {
		known = known.next
	}
	if known != nil {
		if content := known.content.Load(); content != nil {
			return *content, nil
		}
	}
	content, err := make()
	if err != nil || c == nil {
		return content, err
	}
	if known == nil {
		known = &encoding{kind: kind, form: form, next: head}
		if !obj.encoded.CompareAndSwap(head, known) {
			return content, nil // somebody else has made one; the next reader finds it
		}
	}
	if known.content.CompareAndSwap(nil, &content) {
		c.keep(known, len(content))
	}
	return content, nil
}

// keep takes a new encoding in, and gives up the oldest beyond the bound.
func (c *encodings) keep(e *encoding, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.held.Push(e)
	c.mu.bytes += size
	for c.mu.bytes > cmp.Or(c.atMost, encodedAtMost) && c.mu.held.Len() > 0 {
		oldest := c.mu.held.Pop()
		if gone := oldest.content.Swap(nil); gone != nil {
			c.mu.bytes -= len(*gone)
		}
	}
}
