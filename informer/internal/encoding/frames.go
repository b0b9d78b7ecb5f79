// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// MaxFrame is the limit for a frame of a watch or a page of a list, in
	// bytes.
	MaxFrame = 128 << 20
	// MaxWholeList is the limit for a list without pages, in bytes.
	MaxWholeList = 4 << 30
	// SmallBuffer is the initial buffer, bigBuffer the most an idle stream
	// keeps.
	SmallBuffer = 8 << 10
	bigBuffer   = 1 << 20
	// aheadBuffer is the buffer for several frames.
	aheadBuffer = 256 << 10
)

// ReadBody reads r to its end, at most limit bytes. guess is its probable
// length; memory grows with the bytes that arrive, not with guess.
func ReadBody(r io.Reader, limit, guess int64) ([]byte, error) {
	buf := make([]byte, 0, max(SmallBuffer, min(guess+guess/8, bigBuffer)))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, &kube.TooLargeError{Limit: limit}
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), grown(cap(buf), guess, limit))
			copy(bigger, buf)
			buf = bigger
		}
	}
}

// grown returns the next capacity: double, or a guess close to the present
// size, but at most one byte more than the limit.
func grown(size int, guess, limit int64) int64 {
	next := 2 * int64(size)
	if hint := guess + guess/8; int64(size) < hint && hint < 4*int64(size) {
		next = hint
	}
	if next >= limit {
		return limit + 1
	}
	return next
}

// FrameReader splits a watch into frames: protobuf with a length prefix, or one
// JSON text after another. Not safe for concurrent use.
type FrameReader struct {
	src      io.Reader
	Protobuf bool
	limit    int
	Buf      []byte
	r, w     int // unread bytes are buf[r:w]
	err      error
	skipping bool // the rest of the line is garbled
	ahead    bool // several frames are read at once
	shrink   bool // the buffer was for that, and is dropped when it is empty
}

func NewFrameReader(src io.Reader, protobuf bool, limit int) *FrameReader {
	return &FrameReader{src: src, Protobuf: protobuf, limit: limit}
}

// SetAhead makes later reads take what has arrived of several frames, for
// Ready, or ends that.
func (f *FrameReader) SetAhead(ahead bool) {
	f.shrink = f.ahead && !ahead
	f.ahead = ahead
}

// Next returns the next frame, valid until the next call. io.EOF is an end
// between frames, io.ErrUnexpectedEOF one inside a frame.
func (f *FrameReader) Next() ([]byte, error) {
	if f.r == f.w {
		f.r, f.w = 0, 0
		if cap(f.Buf) > bigBuffer || f.shrink {
			f.Buf, f.shrink = nil, false
		}
	}
	if f.Protobuf {
		return f.lengthDelimited()
	}
	return f.jsonText()
}

// Ready returns the next frame if all of it has already been read, else nil. It
// and the frames before it are valid until the next call of Next.
func (f *FrameReader) Ready() []byte {
	unread := f.Buf[f.r:f.w]
	if !f.Protobuf {
		end := bytes.IndexByte(unread, '\n')
		if f.skipping || end < 0 {
			return nil
		}
		return f.takeLine(end)
	}
	if len(unread) < prefix {
		return nil
	}
	end := prefix + int64(binary.BigEndian.Uint32(unread))
	if end > int64(len(unread)) {
		return nil
	}
	f.r += int(end)
	return unread[prefix:end]
}

// prefix is the size of the length before a frame in protobuf.
const prefix = 4

// lengthDelimited reads a big-endian 32-bit length and that many bytes.
func (f *FrameReader) lengthDelimited() ([]byte, error) {
	if err := f.need(prefix); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(f.Buf[f.r:])
	if int64(length) > int64(f.limit) {
		return nil, &kube.TooLargeError{Limit: int64(f.limit)}
	}
	if err := f.need(prefix + int(length)); err != nil {
		return nil, err
	}
	return f.Ready(), nil
}

// jsonText reads one JSON object. The API server writes each on one line; other
// forms are scanned.
func (f *FrameReader) jsonText() ([]byte, error) {
	if f.skipping {
		if err := f.skip(); err != nil {
			return nil, err
		}
	}
	for {
		if err := f.need(1); err != nil {
			return nil, err
		}
		if f.r = jsonspan.SkipSpace(f.Buf[:f.w], f.r); f.r < f.w {
			break
		}
	}
	if f.Buf[f.r] != '{' {
		return nil, f.garbled()
	}
	if line, err := f.line(); err != nil || line != nil {
		return line, err
	}
	var scan textScan
	for {
		end := scan.end(f.Buf[f.r:f.w])
		seen := f.Buf[f.r:f.w]
		if end > 0 {
			seen = seen[:end]
		}
		if next := nextEvent(seen); next > 0 {
			f.r += next
			return nil, &GarbledFrame{fmt.Errorf("the watch event does not end: %w", jsonspan.ErrNotJSON)}
		}
		if end > 0 {
			f.r += end
			return f.Buf[f.r-end : f.r], nil
		}
		if err := f.more(); err != nil {
			return nil, err
		}
	}
}

// line returns the next line if its two ends show that it is one whole event;
// nil if it must be scanned.
func (f *FrameReader) line() ([]byte, error) {
	seen := 0
	for {
		text := f.Buf[f.r:f.w]
		if i := bytes.IndexByte(text[seen:], '\n'); i >= 0 {
			return f.takeLine(seen + i), nil
		}
		if known := min(len(text), len(compactStart)); string(text[:known]) != compactStart[:known] {
			return nil, nil
		}
		seen = len(text)
		if err := f.more(); errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil // the last event may lack its newline
		} else if err != nil {
			return nil, err
		}
	}
}

// takeLine returns the next line, which has length bytes, if it is one whole event,
// else nil.
func (f *FrameReader) takeLine(length int) []byte {
	line := bytes.TrimSuffix(f.Buf[f.r:f.r+length], []byte("\r"))
	if _, _, ok := SplitCompactEvent(line); !ok {
		return nil
	}
	f.r += length + 1
	return line
}

// more reads at least one more byte into the buffer.
func (f *FrameReader) more() error {
	if f.w-f.r >= f.limit {
		return &kube.TooLargeError{Limit: int64(f.limit)}
	}
	return f.need(f.w - f.r + 1)
}

// need fills the buffer to at least n unread bytes. The buffer grows with the
// bytes that arrive, not with n.
func (f *FrameReader) need(n int) error {
	for f.w-f.r < n {
		if f.err != nil {
			return f.ending()
		}
		if f.w == len(f.Buf) || f.ahead && len(f.Buf) >= aheadBuffer && f.r > len(f.Buf)/2 {
			f.makeRoom()
		}
		read, err := f.src.Read(f.Buf[f.w:])
		f.w += read
		f.err = err
	}
	return nil
}

// makeRoom moves the unread bytes to the front, or doubles the buffer.
func (f *FrameReader) makeRoom() {
	size := max(SmallBuffer, 2*(f.w-f.r))
	if f.ahead {
		size = max(size, min(2*len(f.Buf), aheadBuffer))
	}
	if f.r > 0 && f.w-f.r <= len(f.Buf)/2 && size <= len(f.Buf) {
		f.w = copy(f.Buf, f.Buf[f.r:f.w])
		f.r = 0
		return
	}
	bigger := make([]byte, size)
	f.w = copy(bigger, f.Buf[f.r:f.w])
	f.Buf, f.r = bigger, 0
}

// ending returns the error at the end of the source.
func (f *FrameReader) ending() error {
	if errors.Is(f.err, io.EOF) && f.r < f.w {
		return io.ErrUnexpectedEOF
	}
	return f.err
}

// textScan finds the end of a JSON object that arrives in parts.
type textScan struct {
	at       int // bytes scanned
	depth    int
	inString bool
	escaped  bool
}

// end returns the length of the object at the start of text, 0 while it is
// incomplete. text extends the previous one.
func (s *textScan) end(text []byte) int {
	for ; s.at < len(text); s.at++ {
		c := text[s.at]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			s.inString, s.escaped = c != '"', c == '\\'
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth == 0 {
				s.at++
				return s.at
			}
		}
	}
	return 0
}

// The size of an object is estimated before it is decoded, because a few bytes
// can decode to a large object.

var StatusType = reflect.TypeFor[metav1.Status]()

// Small reports whether a message is so short that any content fits.
func Small(message []byte) bool { return len(message) <= 64<<10 }

// TooHeavy returns err, converted to a *TooLargeError if it concerns the
// estimated size.
func TooHeavy(err error) error {
	if heavy, ok := errors.AsType[*decodelimit.TooHeavyError](err); ok {
		return &kube.TooLargeError{Limit: heavy.Limit, Decoded: heavy.Bytes}
	}
	return err
}

// MetadataFits returns an error if the metadata of an object is too large to be
// decoded alone.
func MetadataFits(protobuf bool, object []byte) error {
	if Small(object) {
		return nil
	}
	scale := decodelimit.Of(reflect.TypeFor[*metav1.PartialObjectMetadata]())
	if protobuf {
		return TooHeavy(decodelimit.Alone().Protobuf(scale, object))
	}
	return TooHeavy(decodelimit.Alone().JSON(scale, object))
}
