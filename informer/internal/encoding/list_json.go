// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/internal/jsonspan"
)

// ListReader receives what a list contains, in the order in which it arrives.
type ListReader struct {
	// Begin is called before the items, with what is known of the list by then.
	// Later items of the same list replace those of an earlier call. For
	// protobuf, false means that it is no list of the kind, and the whole message
	// is returned instead.
	Begin func(apiVersion, kind string) bool
	// Item is called with each item, whose bytes are valid during the call and
	// may be modified.
	Item func(raw []byte) error
}

// ReadJSONList reads a list to the end of the source and returns it with an empty
// array in place of its items. An error of the source is a *ReadError; others
// are found by SplitJSONList in the whole text, too.
func ReadJSONList(in *Window, r ListReader) (outside []byte, err error) {
	l := jsonListReader{in: in, reader: r}
	switch err := l.members(); {
	case l.stopped != nil:
		return l.outside, l.stopped
	case err != nil:
		return l.outside, within("split JSON list", notText(err))
	}
	return l.outside, in.drain()
}

// notText returns err of a text that ends too early.
func notText(err error) error {
	if errors.Is(err, io.EOF) {
		return jsonspan.ErrNotJSON
	}
	return err
}

type jsonListReader struct {
	in      *Window
	reader  ListReader
	outside []byte // the list without its items
	stopped error  // by reader
}

func (l *jsonListReader) members() error {
	if c, err := l.token(); err != nil || c != '{' {
		return orElse(err, jsonspan.ErrNotJSON)
	}
	l.take(1)
	if c, err := l.token(); err != nil || c == '}' {
		l.take(1)
		return err
	}
	for {
		if c, err := l.token(); err != nil || c != '"' {
			return orElse(err, jsonspan.ErrNotJSON)
		}
		n, err := l.value()
		if err != nil {
			return err
		}
		items := string(l.in.ahead()[1:n-1]) == "items"
		l.take(n)
		if c, err := l.token(); err != nil || c != ':' {
			return orElse(err, jsonspan.ErrNotJSON)
		}
		l.take(1)
		if err := l.member(items); err != nil {
			return err
		}
		switch c, err := l.token(); {
		case err != nil:
			return err
		case c == '}':
			l.take(1)
			return nil
		case c != ',':
			return jsonspan.ErrNotJSON
		}
		l.take(1)
	}
}

// member reads the value of a member.
func (l *jsonListReader) member(items bool) error {
	c, err := l.token()
	if err != nil {
		return err
	}
	if items {
		l.begin()
		if c == '[' {
			l.outside = append(l.outside, "[]"...)
			return l.elements()
		}
	}
	n, err := l.value()
	l.take(n)
	return err
}

// begin tells what is known of the list.
func (l *jsonListReader) begin() {
	known := append(bytes.TrimRight(l.outside, " \n\r\t:"), ":null}"...)
	list, _ := SplitJSONList(known)
	l.reader.Begin(string(list.APIVersion), string(list.Kind))
}

// elements reads an array. Invalid JSON up to the next comma is an element.
func (l *jsonListReader) elements() error {
	l.in.consume(1)
	if c, err := l.token(); err != nil || c == ']' {
		l.in.consume(1)
		return err
	}
	for {
		if _, err := l.token(); err != nil {
			return err
		}
		n, err := l.element()
		if err != nil {
			return err
		}
		text := l.in.ahead()
		last := text[n] == ']'
		if l.stopped = l.reader.Item(bytes.TrimRight(text[:n], " \n\r\t")); l.stopped != nil {
			return l.stopped
		}
		l.in.consume(n + 1)
		if last {
			return nil
		}
	}
}

// element returns where the element that is ahead ends: at the next comma or
// bracket outside strings, objects and arrays.
func (l *jsonListReader) element() (n int, err error) {
	var scan jsonspan.Scan
	for {
		if n, found := scan.ElementEnd(l.in.ahead()); found {
			if l.in.ahead()[n] == '}' {
				return 0, fmt.Errorf("the list's items end like an object: %w", jsonspan.ErrNotJSON)
			}
			return n, nil
		}
		if err := l.in.more(); err != nil {
			return 0, err
		}
	}
}

// value returns the length of the value that is ahead.
func (l *jsonListReader) value() (n int, err error) {
	var scan jsonspan.Scan
	for {
		if n, found := scan.ValueEnd(l.in.ahead()); found {
			if n == 0 {
				return 0, jsonspan.ErrNotJSON
			}
			return n, nil
		}
		if err := l.in.more(); err != nil {
			return 0, err
		}
	}
}

// token passes over white space and returns the next byte.
func (l *jsonListReader) token() (byte, error) {
	for {
		text := l.in.ahead()
		n := jsonspan.SkipSpace(text, 0)
		l.in.consume(n)
		if n < len(text) {
			return text[n], nil
		}
		if err := l.in.more(); err != nil {
			return 0, err
		}
	}
}

// take moves n bytes to what is outside the items.
func (l *jsonListReader) take(n int) {
	l.outside = append(l.outside, l.in.ahead()[:n]...)
	l.in.consume(n)
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
