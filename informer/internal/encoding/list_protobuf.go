// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProtobufList is a protobuf list without its items.
type ProtobufList struct {
	APIVersion, Kind string
	Meta             metav1.ListMeta
	// Whole is the message, read to its end and not split; nil: it was split. The
	// slice is valid until the window is closed.
	Whole []byte
}

// ReadProtobufList reads a list to the end of the source. A message that does not
// begin as a list of the kind is returned whole. An error of the source is a
// *ReadError; others are found by OpenEnvelope and SplitProtobufList in the whole
// message, too.
func ReadProtobufList(in *Window, r ListReader) (l ProtobufList, err error) {
	in.kept()
	if err := in.need(int64(len(protobufMagic))); err != nil && !errors.Is(err, io.EOF) || !IsProtobuf(in.ahead()) {
		l.Whole, err = in.whole()
		return l, err
	}
	in.consume(len(protobufMagic))
	split := false
	var stopped error
	item := r.Item
	r.Item = func(raw []byte) error { stopped = item(raw); return stopped }
	err = eachField(in, math.MaxInt64, func(field protowire.Number, size int64) error {
		switch {
		case l.Whole != nil:
			return nil
		case field == unknownRaw:
			if !r.Begin(l.APIVersion, l.Kind) {
				l.Whole, err = in.whole()
				return orElse(err, io.EOF)
			}
			in.released()
			split, l.Meta = true, metav1.ListMeta{}
			return l.items(in, size, r)
		}
		value, err := bytesOf(in, size)
		if err != nil {
			return err
		}
		switch field {
		case unknownTypeMeta:
			return eachBytes(value, func(field protowire.Number, value []byte) error {
				switch field {
				case typeMetaAPIVersion:
					l.APIVersion = string(value)
				case typeMetaKind:
					l.Kind = string(value)
				}
				return nil
			})
		case unknownEncoding:
			if len(value) > 0 {
				return fmt.Errorf("content encoding %q is not known", value)
			}
		}
		return nil
	})
	switch {
	case l.Whole != nil:
		return l, nil
	case stopped != nil:
		return l, stopped
	case err != nil:
		return l, within("read protobuf envelope", err)
	case !split:
		l.Whole, err = in.whole()
	}
	return l, err
}

// items reads the list in the next size bytes.
func (l *ProtobufList) items(in *Window, size int64, r ListReader) error {
	err := eachField(in, size, func(field protowire.Number, size int64) error {
		if field != listMetadata && field != listItems {
			return in.discard(size)
		}
		value, err := bytesOf(in, size)
		switch {
		case err != nil:
			return err
		case field == listMetadata:
			return Guard(func() error { return l.Meta.Unmarshal(value) })
		}
		return r.Item(value)
	})
	if err != nil {
		return within("split protobuf list", err)
	}
	return nil
}

// bytesOf reads the value of a field and passes over it.
func bytesOf(in *Window, size int64) ([]byte, error) {
	if err := in.need(size); err != nil {
		return nil, err
	}
	value := in.ahead()[:size]
	in.consume(int(size))
	return value, nil
}

// eachField calls f with the size of each length-delimited field of the next
// size bytes, and skips the others. f passes over the value. math.MaxInt64: to
// the end of the source.
func eachField(in *Window, size int64, f func(field protowire.Number, size int64) error) error {
	for left := size; left > 0; {
		if err := in.need(1); errors.Is(err, io.EOF) && size == math.MaxInt64 {
			return nil
		} else if err != nil {
			return endOf(err)
		}
		var field protowire.Number
		var typ protowire.Type
		n, err := consumed(in, left, func(b []byte) (n int) { field, typ, n = protowire.ConsumeTag(b); return n })
		if err != nil {
			return err
		}
		left -= n
		if typ != protowire.BytesType {
			n, err := consumed(in, left, func(b []byte) int { return protowire.ConsumeFieldValue(field, typ, b) })
			if err != nil {
				return err
			}
			left -= n
			continue
		}
		var length uint64
		if n, err = consumed(in, left, func(b []byte) (n int) { length, n = protowire.ConsumeVarint(b); return n }); err != nil {
			return err
		}
		if left -= n; length > uint64(left) {
			return io.ErrUnexpectedEOF
		}
		if err := f(field, int64(length)); err != nil {
			return endOf(err)
		}
		left -= int64(length)
	}
	return nil
}

// endOf returns err; the end of the source within a message is an error.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// consumed passes over what parse finds at the start of the next left bytes, and
// returns its length.
func consumed(in *Window, left int64, parse func([]byte) int) (int64, error) {
	for want := int64(1); ; {
		text := in.ahead()
		cut := int64(len(text)) >= left
		if cut {
			text = text[:left]
		}
		if int64(len(text)) >= want || cut {
			n := parse(text)
			if n >= 0 {
				in.consume(n)
				return int64(n), nil
			}
			if err := protowire.ParseError(n); cut || !errors.Is(err, io.ErrUnexpectedEOF) {
				return 0, err
			}
			want = 2 * int64(len(text)) // a group may be long
		}
		if err := in.more(); err != nil {
			return 0, endOf(err)
		}
	}
}
