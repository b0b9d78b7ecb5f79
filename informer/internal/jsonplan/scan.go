// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file read tokens of JSON at a position. They return the
// position after it, or bad if the text is not JSON.

const bad = -1

// deepest is how deep objects and arrays may be nested, as in the reference.
const deepest = 10_000

// space returns the first position from i that is not white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		if c := b[i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quoted returns the position of the quote that ends the string whose content
// begins at i. The content is plain if it is the string: without escapes and
// invalid UTF-8.
func quoted(b []byte, i int) (end int, plain bool) {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^ones*'"', x^ones*'\\'
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x | x) & highs
		if found != 0 {
			i += bits.TrailingZeros64(found) / 8
			if b[i] == '"' {
				return i, true
			}
			return unusual(b, i)
		}
		i += 8
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i, true
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return unusual(b, i)
		}
	}
	return bad, false
}

// unusual is quoted from the first byte that is not plain ASCII.
func unusual(b []byte, i int) (end int, plain bool) {
	begin, escapes, high := i, false, false
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			return i, !escapes && (!high || utf8.Valid(b[begin:i]))
		case c == '\\':
			escapes = true
			if i+1 >= len(b) {
				return bad, false
			}
			switch b[i+1] {
			case 'b', 'f', 'n', 'r', 't', '\\', '/', '"':
				i += 2
			case 'u':
				if _, ok := hex4(b, i+2); !ok {
					return bad, false
				}
				i += 6
			default:
				return bad, false
			}
		case c < ' ':
			return bad, false
		default:
			high = high || c >= utf8.RuneSelf
			i++
		}
	}
	return bad, false
}

// hex4 returns the number of four hexadecimal digits.
func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote appends the string of valid content to out. What is not UTF-8 or half
// of a surrogate pair becomes U+FFFD.
func unquote(out, content []byte) []byte {
	for i := 0; i < len(content); {
		c := content[i]
		switch {
		case c == '\\' && content[i+1] == 'u':
			r, _ := hex4(content, i+2)
			i += 6
			if utf16.IsSurrogate(r) {
				first := r
				r = utf8.RuneError
				if i+1 < len(content) && content[i] == '\\' && content[i+1] == 'u' {
					second, _ := hex4(content, i+2)
					if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
						r, i = pair, i+6
					}
				}
			}
			out = utf8.AppendRune(out, r)
		case c == '\\':
			out = append(out, escaped(content[i+1]))
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(content[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return out
}

// escaped returns what a backslash and c stand for.
func escaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// number returns the position after the number at i, and whether it has only
// digits, and perhaps a sign.
func number(b []byte, i int) (end int, integer bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return bad, false
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return bad, false
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		integer = false
		from := i + 1
		if i = digits(b, from); i == from {
			return bad, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		integer = false
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = digits(b, from); i == from {
			return bad, false
		}
	}
	return i, integer
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// literal returns the position after word at i.
func literal(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return bad
	}
	return i + len(word)
}

// valid returns the position after the value at i, which is within depth
// objects and arrays.
func valid(b []byte, i, depth int) int {
	if uint(i) >= uint(len(b)) {
		return bad
	}
	switch b[i] {
	case '"':
		end, _ := quoted(b, i+1)
		if end < 0 {
			return bad
		}
		return end + 1
	case '{', '[':
		return validNested(b, i, depth)
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	end, _ := number(b, i)
	return end
}

func validNested(b []byte, i, depth int) int {
	if depth++; depth > deepest {
		return bad
	}
	object, closing := b[i] == '{', b[i]+2 // of '[' and '{'
	i = space(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i = colon(b, i); i < 0 {
				return bad
			}
		}
		if i = valid(b, i, depth); i < 0 {
			return bad
		}
		if i = space(b, i); i >= len(b) {
			return bad
		}
		switch b[i] {
		case closing:
			return i + 1
		case ',':
			i = space(b, i+1)
		default:
			return bad
		}
	}
}

// colon returns the position of the value that follows the key at i.
func colon(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return bad
	}
	end, _ := quoted(b, i+1)
	if end < 0 {
		return bad
	}
	return value(b, end+1)
}

// value returns the position of the value after the key that ends at i.
func value(b []byte, i int) int {
	if i = space(b, i); i >= len(b) || b[i] != ':' {
		return bad
	}
	return space(b, i+1)
}
