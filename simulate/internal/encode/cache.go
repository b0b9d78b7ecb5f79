// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/flyball-dev/flyball/internal/deque"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// encodedAtMost is the default bound on the bytes of encoded objects that a server caches.
const encodedAtMost = 48 << 20

// Cache holds the last encodings of objects, up to a number of bytes, so the answer to a
// write, the watches that send it and later reads share them. It is safe for concurrent
// use.
type Cache struct {
	AtMost    int // bytes; 0: encodedAtMost
	messages  wire.ProtoMessages
	fragments wire.Fragments
	texts     sync.Pool                // of *jsonWriter
	zippers   sync.Pool                // of *gzip.Writer, each of which has tables of a megabyte
	list      atomic.Pointer[heldList] // of the last long list in protobuf; nil: none

	mu struct {
		sync.Mutex
		held  deque.Deque[*object.Encoding] // the oldest first
		bytes int
	}
}

func (c *Cache) bound() int { return cmp.Or(c.AtMost, encodedAtMost) }

// Size returns the number of cached bytes.
func (c *Cache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.bytes
}

// zipper returns a pooled writer, which the caller resets and puts back.
func (c *Cache) zipper() *gzip.Writer {
	if w, ok := c.zippers.Get().(*gzip.Writer); ok {
		return w
	}
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}

// appendText appends the JSON of an object without its kind.
func (c *Cache) appendText(to []byte, obj *object.Object, known *wire.OpenFragments) ([]byte, error) {
	if c == nil {
		return wire.AppendFields(to, obj.Fields, "kind", "apiVersion")
	}
	w, ok := c.texts.Get().(*wire.JSONWriter)
	if !ok {
		w = &wire.JSONWriter{To: make([]byte, 0, 16<<10)}
	}
	defer c.texts.Put(w)
	defer w.Clear()
	w.Known = known
	err := w.Fields(obj.Fields, "kind", "apiVersion")
	return append(to, w.To...), err
}

// encoded returns the content of an object in a form, from the cache or from make. The
// content must not be modified.
func (c *Cache) encoded(obj *object.Object, kind *kinds.Kind, form object.ContentForm, make func() ([]byte, error)) ([]byte, error) {
	head := obj.Encoded.Load()
	known := head.In(kind, form)
	if content := known.Kept(); content != nil {
		return content, nil
	}
	content, err := make()
	if err != nil || c == nil {
		return content, err
	}
	if known == nil {
		known = &object.Encoding{Kind: kind, Form: form, Size: len(content), Next: head}
		if !obj.Encoded.CompareAndSwap(head, known) {
			return content, nil // another goroutine made one; the next reader finds it
		}
	}
	if known.Content.CompareAndSwap(nil, &content) {
		c.keep(known, len(content))
	}
	return content, nil
}

// measured records and returns the length of an object's content in a form. If another
// goroutine does so at the same time, what it returns may not be recorded.
func (c *Cache) measured(obj *object.Object, kind *kinds.Kind, form object.ContentForm, size int) *object.Encoding {
	head := obj.Encoded.Load()
	e := &object.Encoding{Kind: kind, Form: form, Size: size, Next: head}
	obj.Encoded.CompareAndSwap(head, e)
	return e
}

// keep adds an encoding and drops the oldest beyond the bound.
func (c *Cache) keep(e *object.Encoding, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.held.Push(e)
	c.mu.bytes += size
	for c.mu.bytes > c.bound() && c.mu.held.Len() > 0 {
		oldest := c.mu.held.Pop()
		if gone := oldest.Content.Swap(nil); gone != nil {
			c.mu.bytes -= len(*gone)
		}
	}
}
