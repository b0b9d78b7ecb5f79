// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"sync/atomic"
)

const (
	shift = 5
	width = 1 << shift
	mask  = width - 1
)

// vector is a dense array as a tree of small nodes, with snapshots that cost nothing. It is empty
// as its zero value.
//
//	root ─▶ node ─▶ node ─▶ 32 elements
//	  └─ a snapshot keeps the root; a later write copies the nodes on its path
//
// The owner's lock must exclude other writers and snapshots during a write. Snapshots are
// immutable and read without a lock.
type vector[E any] struct {
	view   vectorView[E]
	stamp  uint64      // nodes with another stamp may belong to a snapshot
	shared atomic.Bool // a snapshot was taken since the stamp was set
}

// vectorView is an immutable snapshot of a vector.
type vectorView[E any] struct {
	root  *node[E]
	len   int
	depth uint // times shift; 0: the root holds elements
}

type node[E any] struct {
	stamp uint64
	kids  []*node[E]
	items []E
}

// Len returns the number of elements.
func (v *vector[E]) Len() int { return v.view.len }

// At returns the element at i, read-only.
func (v *vector[E]) At(i int) *E { return v.view.At(i) }

// View takes a snapshot. It may be called concurrently.
func (v *vector[E]) View() vectorView[E] {
	if !v.shared.Load() {
		v.shared.Store(true)
	}
	return v.view
}

// begin sets a new stamp for later writes if a snapshot was taken.
func (v *vector[E]) begin() {
	if v.shared.Load() {
		v.stamp++
		v.shared.Store(false)
	}
}

// own returns n, or a copy of n that is in no snapshot.
func (v *vector[E]) own(n *node[E]) *node[E] {
	if n.stamp == v.stamp {
		return n
	}
	out := &node[E]{stamp: v.stamp}
	if n.kids != nil {
		out.kids = append(make([]*node[E], 0, cap(n.kids)), n.kids...)
	}
	if n.items != nil {
		out.items = append(make([]E, 0, cap(n.items)), n.items...)
	}
	return out
}

// leaf returns the node with element i; it and its path are then owned by the
// vector.
func (v *vector[E]) leaf(i int) *node[E] {
	v.view.root = v.own(v.view.root)
	n := v.view.root
	for d := v.view.depth; d > 0; d -= shift {
		at := i >> d & mask
		if at == len(n.kids) { // the vector grows here
			n.kids = append(n.kids, &node[E]{stamp: v.stamp})
		} else {
			n.kids[at] = v.own(n.kids[at])
		}
		n = n.kids[at]
	}
	return n
}

// Edit returns the element at i, to be modified before the next snapshot.
func (v *vector[E]) Edit(i int) *E {
	v.begin()
	return &v.leaf(i).items[i&mask]
}

// Append appends e.
func (v *vector[E]) Append(e E) {
	v.begin()
	switch {
	case v.view.root == nil:
		v.view.root = &node[E]{stamp: v.stamp}
	case v.view.len == width<<v.view.depth:
		v.view.root = &node[E]{stamp: v.stamp, kids: []*node[E]{v.view.root}}
		v.view.depth += shift
	}
	n := v.leaf(v.view.len)
	if n.items == nil && v.view.len >= width {
		n.items = make([]E, 0, width) // it will be filled; the first may stay small
	}
	n.items = append(n.items, e)
	v.view.len++
}

// Pop removes and returns the last element.
func (v *vector[E]) Pop() E {
	v.begin()
	last := v.view.len - 1
	n := v.leaf(last)
	e := n.items[len(n.items)-1]
	clear(n.items[len(n.items)-1:])
	n.items = n.items[:len(n.items)-1]
	v.view.len = last
	switch {
	case last == 0:
		v.view = vectorView[E]{}
	case last&mask == 0:
		v.prune(v.view.root, v.view.depth, last)
		if len(v.view.root.kids) == 1 {
			v.view.root = v.view.root.kids[0]
			v.view.depth -= shift
		}
	}
	return e
}

// prune removes the branch of element last, the only one in it.
func (v *vector[E]) prune(n *node[E], depth uint, last int) {
	at := last >> depth & mask
	if last&(1<<depth-1) != 0 {
		v.prune(n.kids[at], depth-shift, last)
		return
	}
	clear(n.kids[at:])
	n.kids = n.kids[:at]
}

// Len returns the number of elements.
func (s vectorView[E]) Len() int { return s.len }

// At returns the element at i, read-only.
func (s vectorView[E]) At(i int) *E {
	n := s.root
	for d := s.depth; d > 0; d -= shift {
		n = n.kids[i>>d&mask]
	}
	return &n.items[i&mask]
}

// All yields every element in order, read-only.
func (s vectorView[E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for i := 0; i < s.len; i += width {
			n := s.root
			for d := s.depth; d > 0; d -= shift {
				n = n.kids[i>>d&mask]
			}
			for j := range min(len(n.items), s.len-i) {
				if !yield(&n.items[j]) {
					return
				}
			}
		}
	}
}
