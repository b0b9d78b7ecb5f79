// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonspan finds where the values of a JSON text begin and end. It does not
// allocate and does not validate the values: the decoder does. Among the elements of an
// array, invalid JSON is an element of its own, so that it affects no other.
package jsonspan

import (
	"bytes"
	"errors"
	"fmt"
)

// SkipSpace returns the first position from i that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the position after the string at i, or -1 if it does not
// end.
func skipString(b []byte, i int) int {
	for at := i + 1; at < len(b); {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		end := at + n
		escapes := 0
		for end-1-escapes >= at && b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		at = end + 1
	}
	return -1
}

// SkipValue returns the position after the value at i, or -1 if there is none
// or it does not end.
func SkipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && bytes.IndexByte([]byte(" \n\r\t,:{}[]\""), b[i]) < 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// ErrNotJSON is wrapped by the errors of this package.
var ErrNotJSON = errors.New("not the JSON text that was expected")

// EachMember calls f for each member of the object at the start of b, with the
// raw key without quotes and the bounds of its value, until f returns false.
func EachMember(b []byte, f func(key []byte, start, end int) bool) error {
	i := SkipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return ErrNotJSON
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return nil
	}
	for i < len(b) && b[i] == '"' {
		keyEnd := skipString(b, i)
		if keyEnd < 0 {
			return ErrNotJSON
		}
		key := b[i+1 : keyEnd-1]
		i = SkipSpace(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return ErrNotJSON
		}
		start := SkipSpace(b, i+1)
		end := SkipValue(b, start)
		if end < 0 {
			return ErrNotJSON
		}
		if !f(key, start, end) {
			return nil
		}
		i = SkipSpace(b, end)
		if i < len(b) && b[i] == '}' {
			return nil
		}
		if i >= len(b) || b[i] != ',' {
			return ErrNotJSON
		}
		i = SkipSpace(b, i+1)
	}
	return ErrNotJSON
}

// EachElement calls f with each element of an array until f returns an error.
// null has no elements.
func EachElement(array []byte, f func(element []byte) error) error {
	if bytes.Equal(array, []byte("null")) {
		return nil
	}
	if len(array) == 0 || array[0] != '[' {
		return ErrNotJSON
	}
	i := SkipSpace(array, 1)
	if i < len(array) && array[i] == ']' {
		return nil
	}
	for {
		end := SkipValue(array, i)
		next := SkipSpace(array, max(end, i))
		if end < 0 || next >= len(array) || array[next] != ',' && array[next] != ']' {
			// Invalid JSON: treat everything up to the next comma as one
			// element.
			if end = elementEnd(array, i); end < 0 {
				return fmt.Errorf("after %d bytes of the list's items: %w", i, ErrNotJSON)
			}
			next = end
		}
		if err := f(array[i:end]); err != nil {
			return err
		}
		if array[next] == ']' {
			return nil
		}
		i = SkipSpace(array, next+1)
	}
}

// elementEnd returns where the element at i ends: at the next comma or bracket
// outside strings, objects and arrays. -1: none.
func elementEnd(array []byte, i int) int {
	for i >= 0 && i < len(array) {
		switch array[i] {
		case ',', ']':
			return i
		case '"', '{', '[':
			i = SkipValue(array, i)
		default:
			i++
		}
	}
	return -1
}

// Count returns how many elements the array at i has, or members the object,
// and the position after it, or -1 if it does not end.
func Count(b []byte, i int) (n, end int) {
	start := i
	depth, commas := 0, 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return 0, -1
			}
			continue
		case ',':
			if depth == 1 {
				commas++
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				if commas == 0 && SkipSpace(b, start+1) == i {
					return 0, i + 1
				}
				return commas + 1, i + 1
			}
		}
		i++
	}
	return 0, -1
}
