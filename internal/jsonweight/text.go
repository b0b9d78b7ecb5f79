// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonweight

import "encoding/json"

// scalar is what a string or a literal takes as a value of p.
func (p *Plan) scalar(t text) int64 {
	switch p.shape {
	case shapeSkipped:
		return 0
	case shapeRaw:
		return int64(len(t.raw)) + 32
	case shapeAny:
		return 16 + t.kept()
	case shapeScalar, shapeBytes:
		if p.takes == '0' && t.number || p.takes == 't' && t.number || p.takes != 't' && p.takes != '0' && !t.number {
			return 16 + t.kept()
		}
		return 128 + t.kept() // an error
	}
	return 192 + 8*t.kept() // its own decoding, or an error
}

// text is a string without its quotes, or a literal.
type text struct {
	raw     []byte
	number  bool // or another literal
	escapes bool
	wide    bool  // it has bytes that may be no UTF-8
	longer  int64 // bytes that an encoder writes as up to six
}

// kept is what decoding the string allocates.
func (t text) kept() int64 {
	n := int64(len(t.raw))
	if t.number {
		return 16 + 5*n // it is read more than once
	}
	return 16 + n + n/8 + t.unescaped()
}

// unescaped is what taking the escapes out allocates, and writing what is no UTF-8
// anew.
func (t text) unescaped() int64 {
	switch {
	case t.wide:
		return 10*int64(len(t.raw)) + 32
	case t.escapes:
		return 3*int64(len(t.raw)) + 32
	}
	return 0
}

// encoded is how long the string is at most when it is encoded again. An escape of two
// bytes may become one of six.
func (t text) encoded() int64 {
	n := int64(len(t.raw)) + 2 + 5*t.longer
	if t.escapes {
		n += 2 * int64(len(t.raw))
	}
	return n
}

// plain is the string without escapes.
func (t text) plain() string {
	if t.escapes {
		var out string
		if json.Unmarshal(append(append([]byte{'"'}, t.raw...), '"'), &out) == nil {
			return out
		}
	}
	return string(t.raw)
}
