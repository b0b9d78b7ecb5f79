// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import "encoding/json"

// scalar returns what a string or a literal takes as a value of p.
func (p *JSONPlan) scalar(t text) int64 {
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
	return 192 + 8*t.kept() // own decoding, or an error
}

// text is a string without quotes, or a literal.
type text struct {
	raw     []byte
	number  bool // or another literal
	escapes bool
	wide    bool  // has bytes that may be invalid UTF-8
	longer  int64 // bytes that an encoder writes as up to six
}

// kept returns what decoding the string allocates.
func (t text) kept() int64 {
	n := int64(len(t.raw))
	if t.number {
		return 16 + 5*n // it is read several times
	}
	return 16 + n + n/8 + t.unescaped()
}

// unescaped returns what removing escapes and replacing invalid UTF-8
// allocates.
func (t text) unescaped() int64 {
	switch {
	case t.wide:
		return 10*int64(len(t.raw)) + 32
	case t.escapes:
		return 3*int64(len(t.raw)) + 32
	}
	return 0
}

// encoded returns the maximum length of the string when encoded again. An
// escape of two bytes can become one of six.
func (t text) encoded() int64 {
	n := int64(len(t.raw)) + 2 + 5*t.longer
	if t.escapes {
		n += 2 * int64(len(t.raw))
	}
	return n
}

// plain returns the string without escapes.
func (t text) plain() string {
	if t.escapes {
		var out string
		if json.Unmarshal(append(append([]byte{'"'}, t.raw...), '"'), &out) == nil {
			return out
		}
	}
	return string(t.raw)
}
