// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"sync/atomic"
	"unsafe"
)

// item is a member of a map, or an element of a list, that is being read.
type item struct {
	key   string
	value any
}

// iface is the memory of an interface without methods.
type iface struct{ typ, data unsafe.Pointer }

func typeWord(v any) unsafe.Pointer { return (*iface)(unsafe.Pointer(&v)).typ }

// boxed returns an interface whose value is at p. typ is that of its type.
func boxed(typ, p unsafe.Pointer) (v any) {
	*(*iface)(unsafe.Pointer(&v)) = iface{typ, p}
	return v
}

// wordOf returns the type of the values that begin with c.
func wordOf(c byte) unsafe.Pointer {
	switch c {
	case '"':
		return typeWord("")
	case '{':
		return typeWord(map[string]any(nil))
	}
	return typeWord([]any(nil))
}

// any reads the value at i into maps, lists and scalars.
func (r *run) any(b *branch, p *any, i int) int {
	if uint(i) >= uint(len(r.b)) {
		return bad
	}
	switch c := r.b[i]; c {
	case '"':
		if r.table != nil {
			return r.anyPart(b, p, i)
		}
		return r.boxedString(b, p, i)
	case '{', '[':
		if r.whole {
			return r.anyPart(b, p, i)
		}
		return r.anyAlone(b, p, i)
	case 't':
		*p = true
		return literal(r.b, i, "true")
	case 'f':
		*p = false
		return literal(r.b, i, "false")
	case 'n':
		return null(r.b, i)
	}
	v, end := readNumber(r.b, i)
	*p = v
	return end
}

// anyAlone reads an object, list or string without the table, though not its
// parts.
func (r *run) anyAlone(b *branch, p *any, i int) int {
	switch r.b[i] {
	case '"':
		return r.boxedString(b, p, i)
	case '{':
		m, end := r.tree(b, i)
		*p = m
		return end
	}
	l, end := r.list(b, i)
	*p = l
	return end
}

// boxes is how many strings an object's interfaces get room for at a time.
const boxes = 16

// boxedString reads a string that is not shared. The interface points to room
// for several, which live as long as the object.
func (r *run) boxedString(b *branch, p *any, i int) int {
	end, plain := quoted(r.b, i+1)
	if end < 0 {
		return bad
	}
	var box *string
	switch {
	case r.keeping > 0:
		box = new(string)
		r.sizes.Own += sized(int(unsafe.Sizeof("")))
	default:
		if len(r.boxes) == 0 {
			r.boxes = make([]string, boxes)
			r.sizes.Own += sized(boxes * int(unsafe.Sizeof("")))
		}
		box, r.boxes = &r.boxes[0], r.boxes[1:]
	}
	if *box = r.unshared(r.b[i+1:end], plain); r.borrows(*box) {
		r.loans = append(r.loans, box)
	}
	*p = boxed(typeWord(""), unsafe.Pointer(box))
	return end + 1
}

// tree reads the object at i into a map of exactly its size.
func (r *run) tree(b *branch, i int) (map[string]any, int) {
	begin, borrowed := len(r.items), 0
	if i = r.open(i); r.isEnd(i, '}') {
		r.sizes.Own += sizeOfMap(0, 0)
		return map[string]any{}, i + 1
	}
	next := &b.first
	for done := false; !done; {
		var m item
		kid, at := r.branchOf(b, next, i)
		left := b.sel != nil
		if kid != nil {
			next, m.key, left = &kid.next, kid.name, kid.left
		} else {
			var content []byte
			var plain bool
			if content, plain, at = r.key(i); at < 0 {
				return nil, bad
			}
			if m.key = r.stringOf(&b.names, content, plain); r.borrows(m.key) {
				borrowed += len(m.key)
			}
			kid = r.plan.grove.only(b, &b.rest, nil)
		}
		if left {
			if i = valid(r.b, at, r.depth); i < 0 {
				return nil, bad
			}
		} else {
			if i = r.any(kid, &m.value, at); i < 0 {
				return nil, bad
			}
			r.items = append(r.items, m)
		}
		if i, done = r.more(i, '}'); i < 0 {
			return nil, bad
		}
	}
	items := r.items[begin:]
	block := r.block(borrowed)
	out := make(map[string]any, len(items))
	for _, m := range items {
		block = r.repay(&m.key, block)
		out[m.key] = m.value
	}
	r.sizes.Own += sizeOfMap(len(out), unsafe.Sizeof(item{}))
	clear(items)
	r.items = r.items[:begin]
	return out, i
}

// branchOf returns the branch of the key at i in b, and the position of its
// value; nil if the key has none. next is the branch that is probably next.
func (r *run) branchOf(b *branch, next *atomic.Pointer[branch], i int) (*branch, int) {
	if uint(i) >= uint(len(r.b)) || r.b[i] != '"' {
		return nil, bad
	}
	if kid := next.Load(); kid != nil && follows(r.b, i+1, kid.name) {
		return kid, value(r.b, i+len(kid.name)+2)
	}
	content, plain, at := r.key(i)
	if at < 0 {
		return nil, bad
	}
	if !plain {
		content = unquote(nil, content)
	}
	kid := r.plan.grove.kid(b, content)
	if kid != nil && plain { // so that follows may compare names with texts
		next.Store(kid)
	}
	return kid, at
}

// list reads the array at i into a list of exactly its length.
func (r *run) list(b *branch, i int) ([]any, int) {
	if r.depth++; r.depth > deepest {
		return nil, bad
	}
	if i = space(r.b, i+1); r.isEnd(i, ']') {
		return []any{}, i + 1
	}
	begin, of := len(r.items), r.plan.grove.only(b, &b.list, b.sel)
	for done := false; !done; {
		var v any
		if i = r.any(of, &v, i); i < 0 {
			return nil, bad
		}
		r.items = append(r.items, item{value: v})
		if i, done = r.more(i, ']'); i < 0 {
			return nil, bad
		}
	}
	items := r.items[begin:]
	out := make([]any, len(items))
	for at, m := range items {
		out[at] = m.value
	}
	r.sizes.Own += sized(len(out)*int(unsafe.Sizeof(any(nil)))) + sized(int(unsafe.Sizeof(out)))
	clear(items)
	r.items = r.items[:begin]
	return out, i
}
