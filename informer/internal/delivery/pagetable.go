// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

const (
	pageShift = 6
	pageWidth = 1 << pageShift
	// pagesKept is how many pages stay when they become empty, since they will
	// probably be reused.
	pagesKept = 64
)

// pageTable is a map from small, densely allocated and reused numbers: an array of pages,
// without the empty ones.
//
//	number 130 ──▶ page 2 ──▶ place 2 ──▶ *V
//
// A lookup takes two steps and no hash, and a table of a few numbers takes a
// few pages, however large the numbers are. It is empty as its zero value. Its owner's lock guards it.
type pageTable[V any] struct {
	pages []*tablePage[V]
	live  int // allocated pages
	spare *tablePage[V]
}

type tablePage[V any] struct {
	used   int
	values [pageWidth]*V
}

// Get returns the value at number i, or nil.
func (t *pageTable[V]) Get(i uint32) *V {
	at := int(i >> pageShift)
	if at >= len(t.pages) || t.pages[at] == nil {
		return nil
	}
	return t.pages[at].values[i%pageWidth]
}

// Set stores v at number i; nil removes the value.
func (t *pageTable[V]) Set(i uint32, v *V) {
	at := int(i >> pageShift)
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
			p = &tablePage[V]{}
		}
		t.spare, t.pages[at] = nil, p
		t.live++
	}
	switch was := p.values[i%pageWidth]; {
	case was == nil && v != nil:
		p.used++
	case was != nil && v == nil:
		p.used--
	}
	p.values[i%pageWidth] = v
	if p.used == 0 && t.live > pagesKept {
		t.pages[at], t.spare = nil, p
		t.live--
	}
}
