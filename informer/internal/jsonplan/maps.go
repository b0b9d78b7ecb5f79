// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// pair is a member of a map of strings that is being read.
type pair struct{ key, value string }

// strings reads an object into a map of strings. Maps of other string types
// have the same layout.
func (r *run) strings(n *node, p unsafe.Pointer, i int) int {
	begin, borrowed := len(r.pairs), 0
	defer func() {
		clear(r.pairs[begin:])
		r.pairs = r.pairs[:begin]
	}()
	if i = r.open(i); r.isEnd(i, '}') {
		*(*map[string]string)(p) = make(map[string]string)
		r.sizes.Own += sizeOfMap(0, 0)
		return i + 1
	}
	for done := false; !done; {
		key, plain, at := r.key(i)
		if at < 0 {
			return bad
		}
		m := pair{key: r.stringOf(&n.site, key, plain)}
		if r.b[at] == '"' {
			end, plain := quoted(r.b, at+1)
			if end < 0 {
				return bad
			}
			m.value = r.stringOf(&n.elem.site, r.b[at+1:end], plain)
			i = end + 1
		} else if i = null(r.b, at); i < 0 {
			return bad
		}
		if r.borrows(m.key) {
			borrowed += len(m.key)
		}
		if r.borrows(m.value) {
			borrowed += len(m.value)
		}
		r.pairs = append(r.pairs, m)
		if i, done = r.more(i, '}'); i < 0 {
			return bad
		}
	}
	pairs := r.pairs[begin:]
	block := r.block(borrowed)
	m := make(map[string]string, len(pairs))
	for _, s := range pairs {
		block = r.repay(&s.key, block)
		block = r.repay(&s.value, block)
		m[s.key] = s.value
	}
	*(*map[string]string)(p) = m
	r.sizes.Own += sizeOfMap(len(m), 2*unsafe.Sizeof(""))
	return i
}

// block returns room for borrowed strings of so many bytes.
func (r *run) block(bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	r.sizes.Own += sized(bytes)
	return make([]byte, 0, bytes)
}

// repay moves s into block if it is borrowed.
func (r *run) repay(s *string, block []byte) []byte {
	if r.borrows(*s) {
		*s, block = moved(*s, block)
	}
	return block
}

// quantities reads an object into a map of quantities.
func (r *run) quantities(n *node, p unsafe.Pointer, i int) int {
	m := make(map[string]resource.Quantity, r.guess(i))
	*(*map[string]resource.Quantity)(p) = m
	if i = r.open(i); r.isEnd(i, '}') {
		return i + 1
	}
	for done := false; !done; {
		key, plain, at := r.key(i)
		if at < 0 {
			return bad
		}
		var q resource.Quantity
		if i = r.byMethod(n.elem, unsafe.Pointer(&q), at); i < 0 {
			return bad
		}
		m[r.keyOf(n, key, plain)] = q
		if i, done = r.more(i, '}'); i < 0 {
			return bad
		}
	}
	r.sizes.Own += sizeOfMap(len(m), unsafe.Sizeof("")+unsafe.Sizeof(resource.Quantity{}))
	return i
}

// keyOf returns a key that is not borrowed.
func (r *run) keyOf(n *node, content []byte, plain bool) string {
	s := r.stringOf(&n.site, content, plain)
	if r.borrows(s) {
		r.sizes.Own += sized(len(s))
		return strings.Clone(s)
	}
	return s
}

// mapping reads an object into a map whose keys are strings.
func (r *run) mapping(n *node, p unsafe.Pointer, i int) int {
	m := reflect.MakeMapWithSize(n.typ, r.guess(i))
	reflect.NewAt(n.typ, p).Elem().Set(m)
	if i = r.open(i); r.isEnd(i, '}') {
		return i + 1
	}
	name := reflect.New(n.typ.Key()).Elem()
	elem := reflect.New(n.elem.typ).Elem()
	for done := false; !done; {
		key, plain, at := r.key(i)
		if at < 0 {
			return bad
		}
		loans := len(r.loans)
		if i = r.value(n.elem, elem.Addr().UnsafePointer(), at); i < 0 {
			return bad
		}
		r.keepLoans(loans) // the value moves
		name.SetString(r.keyOf(n, key, plain))
		m.SetMapIndex(name, elem)
		elem.SetZero()
		if i, done = r.more(i, '}'); i < 0 {
			return bad
		}
	}
	r.sizes.Own += sizeOfMap(m.Len(), unsafe.Sizeof("")+n.elem.size)
	return i
}
