// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"unsafe"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// longestPart is the length of the longest value that is shared as a whole, in
// bytes of text. Of a longer one the parts are shared.
const longestPart = 16 << 10

// part reads a pointer, list or map. It finds the value in the table, or decodes
// it: for the table, if the table has seen the text before, else for this object
// alone.
func (r *run) part(n *node, p unsafe.Pointer, i int) int {
	if !n.site.Due() {
		return r.alone(n, p, i)
	}
	raw, ok := r.span(i)
	if !ok {
		return r.alone(n, p, i)
	}
	v, found, ticket := r.table.LookDue(&n.site, raw)
	switch {
	case found:
		n.set(p, v)
		r.sizes.Shared += v.Size
		return i + len(raw)
	case !ticket.Wanted():
		return r.alone(n, p, i)
	}
	before := r.begin()
	end := r.alone(n, p, i)
	if end < 0 {
		return bad
	}
	size := r.finish(before)
	if v := n.get(p); end == i+len(raw) && (n.form != formSlice || v.Len > 0) {
		v.Size = size
		n.set(p, r.table.Keep(&n.site, raw, v, ticket))
	}
	return end
}

// before is the state of a run before it decodes a value for the table.
type before struct {
	loans int
	own   uint32
}

// begin starts to decode a value for the table, into memory of its own.
func (r *run) begin() before {
	r.keeping++
	return before{len(r.loans), r.sizes.Own}
}

// finish returns what the value takes.
func (r *run) finish(b before) uint32 {
	r.keeping--
	r.keepLoans(b.loans)
	size := r.sizes.Own - b.own
	r.sizes.Own = b.own
	r.sizes.Shared += size
	return size
}

// get returns what the value at p points to.
func (n *node) get(p unsafe.Pointer) share.Value {
	if n.form == formSlice {
		s := (*sliceOf)(p)
		return share.Value{Ptr: s.data, Len: s.len}
	}
	return share.Value{Ptr: *(*unsafe.Pointer)(p)}
}

func (n *node) set(p unsafe.Pointer, v share.Value) {
	if n.form == formSlice {
		*(*sliceOf)(p) = sliceOf{v.Ptr, v.Len, v.Len}
		return
	}
	*(*unsafe.Pointer)(p) = v.Ptr
}

// alone reads a pointer, list or map without the table, though not its parts.
func (r *run) alone(n *node, p unsafe.Pointer, i int) int {
	switch n.form {
	case formPointer:
		return r.pointer(n, p, i)
	case formSlice:
		return r.slice(n, p, i)
	case formStrings:
		return r.strings(n, p, i)
	case formQuantities:
		return r.quantities(n, p, i)
	case formMap:
		return r.mapping(n, p, i)
	}
	m, end := r.tree(n.tree, i)
	*(*map[string]any)(p) = m
	return end
}

// anyPart is part for a value of an interface.
func (r *run) anyPart(b *branch, p *any, i int) int {
	if !b.site.Due() {
		return r.anyAlone(b, p, i)
	}
	raw, ok := r.span(i)
	if !ok {
		return r.anyAlone(b, p, i)
	}
	v, found, ticket := r.table.LookDue(&b.site, raw)
	switch {
	case found:
		*p = boxed(wordOf(raw[0]), v.Ptr)
		r.sizes.Shared += v.Size
		return i + len(raw)
	case !ticket.Wanted():
		return r.anyAlone(b, p, i)
	}
	before := r.begin()
	end := r.anyAlone(b, p, i)
	if end < 0 {
		return bad
	}
	size := r.finish(before)
	if end != i+len(raw) {
		return end // the text is not valid
	}
	v = r.table.Keep(&b.site, raw, share.Value{Ptr: (*iface)(unsafe.Pointer(p)).data, Size: size}, ticket)
	*p = boxed(wordOf(raw[0]), v.Ptr)
	return end
}
