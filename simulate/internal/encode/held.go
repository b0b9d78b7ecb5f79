// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	// heldAtMost bounds the compressed bytes of a heldList.
	heldAtMost = 64 << 20
	heldBlock  = 256 << 10
	// heldRenewed is the part of a list that the held list must lack for a new one to
	// replace it: an eighth.
	heldRenewed = 8
)

// heldList is the encoded objects of a long list in protobuf, one after the other. They are
// compressed, because objects of one kind resemble each other: this costs a tenth of
// encoding an object again, which reads maps and strings all over memory. It is immutable
// and keeps no object alive.
type heldList struct {
	kind *kinds.Kind
	form object.ContentForm
	text []byte
	at   map[*object.Encoding]int64 // where each begins, before compression
}

// place returns where an object's encoding begins. ok is false if the list does not hold it.
func (l *heldList) place(e *object.Encoding) (at int64, ok bool) {
	if l == nil {
		return 0, false
	}
	at, ok = l.at[e]
	return at, ok
}

// len returns the number of encodings.
func (l *heldList) len() int {
	if l == nil {
		return 0
	}
	return len(l.at)
}

// heldWriter makes a heldList. What it is given beyond its bound is left out.
type heldWriter struct {
	atMost int // bytes; 0: heldAtMost
	list   heldList
	size   int64
	text   bytes.Buffer
	in     *s2.Writer
}

// add holds the content of an encoding if there is room.
func (w *heldWriter) add(e *object.Encoding, content []byte) error {
	if e == nil || w.text.Len() >= cmp.Or(w.atMost, heldAtMost) {
		return nil
	}
	if w.in == nil {
		w.in = s2.NewWriter(&w.text, s2.WriterConcurrency(1), s2.WriterBlockSize(heldBlock))
		w.list.at = map[*object.Encoding]int64{}
	}
	w.list.at[e] = w.size
	w.size += int64(len(content))
	_, err := w.in.Write(content)
	return err
}

// end returns what was added.
func (w *heldWriter) end() (*heldList, error) {
	if w.in == nil {
		return nil, nil
	}
	if err := w.in.Close(); err != nil {
		return nil, err
	}
	w.list.text = bytes.Clone(w.text.Bytes())
	w.text = bytes.Buffer{}
	return &w.list, nil
}

// heldReader reads a heldList from its beginning to its end.
type heldReader struct {
	list *heldList // nil: an empty one
	out  *s2.Reader
	at   int64
}

// append appends the content of an encoding of this size. ok is false if the list does not
// hold it, or the reader has passed it.
func (r *heldReader) append(to []byte, e *object.Encoding, size int) (_ []byte, ok bool, err error) {
	at, ok := r.list.place(e)
	if !ok || at < r.at {
		return to, false, nil
	}
	if r.out == nil {
		r.out = s2.NewReader(bytes.NewReader(r.list.text), s2.ReaderMaxBlockSize(heldBlock))
	}
	if err := r.out.Skip(at - r.at); err != nil {
		return to, false, err
	}
	r.at = at + int64(size)
	from := len(to)
	to = slices.Grow(to, size)[:from+size]
	_, err = io.ReadFull(r.out, to[from:])
	return to, true, err
}

// heldFor returns the held list of a kind in a form, or nil.
func (c *Cache) heldFor(kind *kinds.Kind, form object.ContentForm) *heldList {
	if l := c.list.Load(); l != nil && l.kind == kind && l.form == form {
		return l
	}
	return nil
}
