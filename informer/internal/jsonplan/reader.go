// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import "github.com/flyball-dev/flyball/internal/jsonspan"

// reader walks through a text.
type reader struct {
	b     []byte
	depth int // of objects and arrays around the position
	ahead int // bytes read in advance
}

// Values are measured before they are decoded: how long a list is, where a value
// that may be shared ends.

// farthest is how many times the length of the text may be read in advance, so
// that deeply nested lists do not take time that grows with the square of it.
const farthest = 32

// unchecked is how large a list may become, in bytes, before it is known to be
// valid: a comma is enough for an element.
const unchecked = 64 << 10

// open returns the position of the first key of the object at i, or of its end.
func (r *reader) open(i int) int {
	if r.depth++; r.depth > deepest {
		return bad
	}
	return space(r.b, i+1)
}

// key returns the bounds of the key at i and the position of its value.
func (r *reader) key(i int) (content []byte, plain bool, at int) {
	if uint(i) >= uint(len(r.b)) || r.b[i] != '"' {
		return nil, false, bad
	}
	end, plain := quoted(r.b, i+1)
	if end < 0 {
		return nil, false, bad
	}
	content = r.b[i+1 : end]
	if i = value(r.b, end+1); uint(i) >= uint(len(r.b)) {
		return nil, false, bad
	}
	return content, plain, i
}

// more returns the position of the next key or value after the value that ends
// at i, or if there is none, the position after the object or array.
func (r *reader) more(i int, closing byte) (at int, done bool) {
	if i = space(r.b, i); i >= len(r.b) {
		return bad, true
	}
	switch r.b[i] {
	case ',':
		return space(r.b, i+1), false
	case closing:
		r.depth--
		return i + 1, true
	}
	return bad, true
}

func (r *reader) isEnd(i int, closing byte) bool {
	if i >= 0 && i < len(r.b) && r.b[i] == closing {
		r.depth--
		return true
	}
	return false
}

// count returns how many elements or members the array or object at i has, and
// the position after it. It only finds its end; it does not validate.
func (r *reader) count(i int) (n, end int) {
	n, end = jsonspan.Count(r.b, i)
	if r.ahead += end - i; end < 0 || r.ahead > farthest*len(r.b) {
		return 0, bad
	}
	return n, end
}

// fits reports whether a list of so many elements may be allocated.
func (r *reader) fits(count int, size uintptr, i int) bool {
	if uintptr(count)*size <= unchecked {
		return true
	}
	end := valid(r.b, i, r.depth)
	r.ahead += end - i
	return end >= 0
}

// guess returns room for the members of the object at i. Invalid text may make
// it too high, but not far.
func (r *reader) guess(i int) int {
	n, _ := r.count(i)
	return min(n, 1<<10)
}

// span returns the text of the value at i, if it may be shared. The values of a
// text that decodes are nested as deeply everywhere, so only texts that could be
// too deep here are refused.
func (r *reader) span(i int) (raw []byte, ok bool) {
	if r.ahead > farthest*len(r.b) || r.depth+longestPart/2 > deepest {
		return nil, false
	}
	end := jsonspan.SkipValue(r.b[:min(len(r.b), i+longestPart)], i)
	if end < 0 {
		r.ahead += min(len(r.b)-i, longestPart)
		return nil, false
	}
	r.ahead += end - i
	return r.b[i:end:end], true
}
