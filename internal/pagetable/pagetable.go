// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package pagetable is a map from small numbers that are given out densely and
// used again: an array in pages, of which those are there that have something.
//
//	number 130 ──▶ page 2 ──▶ place 2 ──▶ *V
//
// To look a number up takes two steps and no hash, and a table of a few numbers
// costs a few pages, however large the numbers are.
package pagetable

const (
	shift = 6
	width = 1 << shift
	// kept pages stay when they become empty: it is likely that they are used
	// again.
	kept = 64
)

// Table is empty as its zero value. Its owner's lock guards it.
type Table[V any] struct {
	pages []*page[V]
	live  int // pages that are there
	spare *page[V]
}

type page[V any] struct {
	used   int
	values [width]*V
}

// Get is what Set has put at number i; nil: nothing.
func (t *Table[V]) Get(i uint32) *V {
	at := int(i >> shift)
	if at >= len(t.pages) || t.pages[at] == nil {
		return nil
	}
	return t.pages[at].values[i%width]
}

// Set puts v at number i; nil takes away what is there.
func (t *Table[V]) Set(i uint32, v *V) {
	at := int(i >> shift)
	for at >= len(t.pages) {
		if v == nil {
			return
		}
		t.pages = append(t.pages, nil)
	}
	p := t.pages[at]
	if p == nil {
		if v == nil {
			return
		}
		if p = t.spare; p == nil {
			p = &page[V]{}
		}
		t.spare, t.pages[at] = nil, p
		t.live++
	}
	switch was := p.values[i%width]; {
	case was == nil && v != nil:
		p.used++
	case was != nil && v == nil:
		p.used--
	}
	p.values[i%width] = v
	if p.used == 0 && t.live > kept {
		t.pages[at], t.spare = nil, p
		t.live--
	}
}
