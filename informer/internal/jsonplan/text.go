// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"unsafe"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// A string that is not shared is borrowed from the text at first: it is part of
// the bytes. settle moves all those of an object into one block of memory.

// longestShared is the length of the longest string that is looked up.
const longestShared = 1 << 10

func (r *run) string(n *node, p *string, i int) int {
	end, plain := quoted(r.b, i+1)
	if end < 0 {
		return bad
	}
	if *p = r.stringOf(&n.site, r.b[i+1:end], plain); r.borrows(*p) {
		r.loans = append(r.loans, p)
	}
	return end + 1
}

// stringOf returns the string of content, which is shared, borrowed, or in
// memory of its own.
func (r *run) stringOf(site *share.Site, content []byte, plain bool) string {
	if r.table != nil && plain && len(content) > 0 && len(content) <= longestShared {
		if s, shared := r.table.String(site, content); shared {
			r.sizes.Shared += sized(len(s))
			return s
		}
	}
	return r.unshared(content, plain)
}

// unshared is stringOf without the table.
func (r *run) unshared(content []byte, plain bool) string {
	if !plain {
		r.unquoted = unquote(r.unquoted[:0], content)
		r.sizes.Own += sized(len(r.unquoted))
		return string(r.unquoted)
	}
	return unsafe.String(unsafe.SliceData(content), len(content))
}

// borrows reports whether s is part of the text.
func (r *run) borrows(s string) bool {
	at, begin := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(r.b)))
	return len(s) > 0 && at-begin < uintptr(len(r.b))
}

// keepLoans moves the strings borrowed since there were from loans into a block.
func (r *run) keepLoans(from int) {
	loans := r.loans[from:]
	if len(loans) == 0 {
		return
	}
	bytes := 0
	for _, s := range loans {
		bytes += len(*s)
	}
	block := make([]byte, 0, bytes)
	r.sizes.Own += sized(bytes)
	for _, s := range loans {
		*s, block = moved(*s, block)
	}
	clear(loans)
	r.loans = r.loans[:from]
}

// moved returns s as a part of block, which has room for it.
func moved(s string, block []byte) (string, []byte) {
	at := len(block)
	block = append(block, s...)
	return unsafe.String(&block[at], len(s)), block
}
