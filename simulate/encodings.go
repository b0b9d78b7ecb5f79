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
	atMost    int // bytes; 0: encodedAtMost
	messages  protoMessages
	fragments fragments
	texts     sync.Pool // of *jsonWriter
	zippers   sync.Pool // of *gzip.Writer, each of which has tables of a megabyte

	mu struct {
		sync.Mutex
		held  deque.Deque[*encoding] // the oldest first
		bytes int
	}
}

func (c *encodings) bound() int { return cmp.Or(c.atMost, encodedAtMost) }

// zipper is a writer to reset, and to put back among the others.
func (c *encodings) zipper() *gzip.Writer {
	if w, ok := c.zippers.Get().(*gzip.Writer); ok {
		return w
	}
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // of a level that there is
	return w
}

// appendText appends the JSON of an object without its kind.
func (c *encodings) appendText(to []byte, obj *object, known *openFragments) ([]byte, error) {
	if c == nil {
		return appendFields(to, obj.fields, "kind", "apiVersion")
	}
	w, ok := c.texts.Get().(*jsonWriter)
	if !ok {
		w = &jsonWriter{to: make([]byte, 0, 16<<10)}
	}
	defer c.texts.Put(w)
	defer w.clear()
	w.known = known
	err := w.fields(obj.fields, "kind", "apiVersion")
	return append(to, w.to...), err
}

// encoding is an object in one form of one kind. Those of an object are a list.
type encoding struct {
	kind    *Kind
	form    contentForm
	size    int                    // of the content, which stays known
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
	known := head.in(kind, form)
	if content := known.kept(); content != nil {
		return content, nil
	}
	content, err := make()
	if err != nil || c == nil {
		return content, err
	}
	if known == nil {
		known = &encoding{kind: kind, form: form, size: len(content), next: head}
		if !obj.encoded.CompareAndSwap(head, known) {
			return content, nil // somebody else has made one; the next reader finds it
		}
	}
	if known.content.CompareAndSwap(nil, &content) {
		c.keep(known, len(content))
	}
	return content, nil
}

// in is the encoding of the list that begins with e in a form; nil: there is none.
func (e *encoding) in(kind *Kind, form contentForm) *encoding {
	for e != nil && (e.kind != kind || e.form != form) {
		e = e.next
	}
	return e
}

// kept is the content, if it is not given up.
func (e *encoding) kept() []byte {
	if e == nil {
		return nil
	}
	if content := e.content.Load(); content != nil {
		return *content
	}
	return nil
}

// measured remembers how long the content of an object is in a form.
func (c *encodings) measured(obj *object, kind *Kind, form contentForm, size int) {
	head := obj.encoded.Load()
	obj.encoded.CompareAndSwap(head, &encoding{kind: kind, form: form, size: size, next: head})
}

// keep takes a new encoding in, and gives up the oldest beyond the bound.
func (c *encodings) keep(e *encoding, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.held.Push(e)
	c.mu.bytes += size
	for c.mu.bytes > c.bound() && c.mu.held.Len() > 0 {
		oldest := c.mu.held.Pop()
		if gone := oldest.content.Swap(nil); gone != nil {
			c.mu.bytes -= len(*gone)
		}
	}
}
