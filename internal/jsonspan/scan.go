// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonspan

import "bytes"

// Scan finds an end in a text that arrives in parts. Each call has the text of
// the previous one and more. The zero value is a new scan, for one kind of end.
type Scan struct {
	at     int // bytes scanned
	depth  int
	quoted int // 1 + start of the string that at is in; 0: none
}

// ElementEnd returns the position of the comma or closing bracket at which the
// array element at the start of text ends. A closing brace without an opening
// one is an end, too.
func (s *Scan) ElementEnd(text []byte) (n int, found bool) {
	for s.next(text) {
		switch c := text[s.at]; {
		case s.depth == 0 && (c == ',' || c == ']' || c == '}'):
			return s.at, true
		default:
			s.pass(c)
		}
	}
	return 0, false
}

// ValueEnd returns the position after the value at the start of text; 0: there
// is none. A number or a word ends with what follows it.
func (s *Scan) ValueEnd(text []byte) (n int, found bool) {
	for s.next(text) {
		c := text[s.at]
		if s.at == 0 || s.depth > 0 {
			if s.at == 0 && bytes.IndexByte([]byte(" \n\r\t,:}]"), c) >= 0 {
				return 0, true
			}
			if s.pass(c); s.depth == 0 && (c == '}' || c == ']') {
				return s.at, true
			}
			continue
		}
		if text[0] == '"' || bytes.IndexByte([]byte(" \n\r\t,:{}[]\""), c) >= 0 {
			return s.at, true
		}
		s.at++
	}
	// A string ends with its quote, whatever follows.
	if len(text) > 0 && text[0] == '"' && s.at == len(text) && s.at > 0 && s.quoted == 0 {
		return s.at, true
	}
	return 0, false
}

// next passes over strings and reports whether there is a byte outside them.
func (s *Scan) next(text []byte) bool {
	for s.quoted > 0 {
		n := bytes.IndexByte(text[s.at:], '"')
		if n < 0 {
			s.at = len(text)
			return false
		}
		end := s.at + n
		escapes := 0
		for end-1-escapes >= s.quoted && text[end-1-escapes] == '\\' {
			escapes++
		}
		if s.at = end + 1; escapes%2 == 0 {
			s.quoted = 0
		}
	}
	return s.at < len(text)
}

// pass passes over c, which is outside strings.
func (s *Scan) pass(c byte) {
	s.at++
	switch c {
	case '"':
		s.quoted = s.at
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
}
