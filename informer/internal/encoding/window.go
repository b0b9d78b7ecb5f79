// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/flyball-dev/flyball/kube"
)

// listBuffer is the initial buffer of a list.
const listBuffer = 64 << 10

// Buffers are reused by the lists of one server, one after the other. Large
// ones are left to the garbage collector. The zero value is ready to use. Safe
// for concurrent use.
type Buffers struct{ pool sync.Pool }

func (b *Buffers) take() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, listBuffer)
}

func (b *Buffers) giveBack(buf []byte) {
	if cap(buf) <= bigBuffer && cap(buf) > 0 {
		b.pool.Put(&buf)
	}
}

// ReadError is an error of the source, as opposed to one of its content.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// Window reads a list through one buffer, which grows to its largest item and
// shrinks again. Not safe for concurrent use.
type Window struct {
	src     io.Reader
	limit   int64 // bytes of the source
	buffers *Buffers
	buf     []byte
	from    int // the first byte that is still needed
	at      int // the first byte that is not consumed
	end     int // of the bytes read
	keep    bool
	read    int64 // bytes of the source so far
	err     error // of the source
}

// NewWindow returns a window on src, of which at most limit bytes are read. Call
// Close when done.
func NewWindow(src io.Reader, limit int64, buffers *Buffers) *Window {
	return &Window{src: src, limit: limit, buffers: buffers, buf: buffers.take()}
}

// Close gives the buffer back. What the window returned is no longer valid.
func (in *Window) Close() {
	in.buffers.giveBack(in.buf)
	in.buf = nil
}

// Size returns how many bytes were read.
func (in *Window) Size() int64 { return in.read }

// Held returns the size of the buffer in bytes.
func (in *Window) Held() int { return len(in.buf) }

// ahead returns the bytes that were read and not consumed.
func (in *Window) ahead() []byte { return in.buf[in.at:in.end] }

// need reads until n bytes are ahead. io.EOF: fewer are left. Memory grows with
// the bytes that arrive, not with n.
func (in *Window) need(n int64) error {
	for int64(in.end-in.at) < n {
		if err := in.more(); err != nil {
			return err
		}
	}
	return nil
}

// more reads at least one more byte.
func (in *Window) more() error {
	for before := in.end; in.end == before; {
		if in.err != nil {
			return in.failed()
		}
		if in.end == len(in.buf) {
			in.makeRoom()
			before = in.end
		}
		var n int
		n, in.err = in.src.Read(in.buf[in.end:])
		in.end += n
		if in.read += int64(n); in.read > in.limit {
			in.err = &kube.TooLargeError{Limit: in.limit}
			return in.failed()
		}
	}
	return nil
}

func (in *Window) failed() error {
	if errors.Is(in.err, io.EOF) {
		return io.EOF
	}
	return &ReadError{in.err}
}

// makeRoom moves what is needed to the front, into another buffer if this one is
// too small, or much larger than needed.
func (in *Window) makeRoom() {
	needed, to := in.buf[in.from:in.end], in.buf
	switch size := len(in.buf); {
	case len(needed) > size/2:
		to = make([]byte, 2*size)
	case size > bigBuffer && len(needed) <= listBuffer/2:
		to = make([]byte, listBuffer)
	}
	in.end = copy(to, needed)
	in.buf, in.at, in.from = to, in.at-in.from, 0
}

// consume passes over n bytes that are ahead.
func (in *Window) consume(n int) {
	if in.at += n; !in.keep {
		in.from = in.at
	}
}

// discard passes over n bytes that need not be ahead.
func (in *Window) discard(n int64) error {
	for {
		part := min(n, int64(in.end-in.at))
		in.consume(int(part))
		if n -= part; n == 0 {
			return nil
		}
		if err := in.more(); err != nil {
			return err
		}
	}
}

// kept makes the window keep all that follows, until released.
func (in *Window) kept() { in.keep, in.from = true, in.at }

func (in *Window) released() { in.keep, in.from = false, in.at }

// whole reads to the end and returns all bytes since kept was called.
func (in *Window) whole() ([]byte, error) {
	for {
		if err := in.more(); errors.Is(err, io.EOF) {
			return in.buf[in.from:in.end], nil
		} else if err != nil {
			return nil, err
		}
	}
}

// All reads to the end and returns all bytes that are not consumed, valid until
// Close.
func (in *Window) All() ([]byte, error) {
	in.kept()
	return in.whole()
}

// drain reads to the end, so that an error of the source is found and the
// connection can be used again.
func (in *Window) drain() error {
	for {
		in.consume(in.end - in.at)
		if err := in.more(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// within returns err of something that must end in this source: the end of the
// source is an error.
func within(what string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if read, is := err.(*ReadError); is {
		return read
	}
	return fmt.Errorf("%s: %w", what, err)
}
