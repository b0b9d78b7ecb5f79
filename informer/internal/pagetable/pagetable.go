// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package pagetable is a map from small, densely allocated and reused numbers:
// an array of pages, without the empty ones.
//
//	number 130 ──▶ page 2 ──▶ place 2 ──▶ *V
//
// A lookup takes two steps and no hash, and a table of a few numbers takes a
// few pages, however large the numbers are.
package pagetable

const (
	shift = 6
	width = 1 << shift
	// kept is how many pages stay when they become empty, since they will
	// probably be reused.
	kept = 64
)

// Table is empty as its zero value. Its owner's lock guards it.
type Table[V any] struct {
	pages []*page[V]
	live  int // allocated pages
	spare *page[V]
}

type page[V any] struct {
	used   int
	values [width]*V
}

// Get returns the value at number i, or nil.
func (t *Table[V]) Get(i uint32) *V {
	at := int(i >> shift)
	if at >= len(t.pages) || t.pages[at] == nil {
		return nil
	}
	return t.pages[at].values[i%width]
}

// Set stores v at number i; nil removes the value.
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
