// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

const (
	pageBits  = 10
	pageSize  = 1 << pageBits
	firstPage = 16
)

// slab keeps entries in pages, so that it grows without copying. Freed entries are reused, last freed first. Only the first
// page is ever copied: it starts small, for the many queues with few keys.
type slab[K comparable] struct {
	pages [][]entry[K]
	high  number // all used numbers are below; 0 only before the first use
	free  number // head of the doubly linked free list
	live  int
}

// at returns the entry n. The pointer is valid until the next alloc or compact.
func (s *slab[K]) at(n number) *entry[K] { return &s.pages[n>>pageBits][n&(pageSize-1)] }

func (s *slab[K]) alloc() number {
	s.live++
	if n := s.free; n != 0 {
		s.unlinkFree(n)
		return n
	}
	if s.high == 0 {
		s.high = 1 // number 0 means none: its entry stays unused
	}
	n := s.high
	s.high++
	s.reserve(n)
	return n
}

// reserve makes room for entry n, the first one without room.
func (s *slab[K]) reserve(n number) {
	p, i := int(n>>pageBits), int(n&(pageSize-1))
	switch {
	case p == 0 && len(s.pages) == 0:
		s.pages = append(s.pages, make([]entry[K], firstPage))
	case p == 0 && i == len(s.pages[0]):
		page := make([]entry[K], 2*i)
		copy(page, s.pages[0])
		s.pages[0] = page
	case p == len(s.pages):
		s.pages = append(s.pages, make([]entry[K], pageSize))
	}
}

// release frees entry n and clears it.
func (s *slab[K]) release(n number) {
	s.live--
	*s.at(n) = entry[K]{next: s.free}
	if s.free != 0 {
		s.at(s.free).prev = n
	}
	s.free = n
}

func (s *slab[K]) unlinkFree(n number) {
	e := s.at(n)
	if e.prev != 0 {
		s.at(e.prev).next = e.next
	} else {
		s.free = e.next
	}
	if e.next != 0 {
		s.at(e.next).prev = e.prev
	}
	e.next, e.prev = 0, 0
}

// sparse reports whether less than a quarter of the entries are live, beyond one page.
func (s *slab[K]) sparse() bool { return int(s.high) > 4*s.live+pageSize }

// compact removes the highest entry. A live one moves to a free place; the caller then updates references to it.
func (s *slab[K]) compact() (from, to number) {
	top := s.high - 1
	if s.at(top).is(used) {
		from, to = top, s.free
		s.unlinkFree(to)
		*s.at(to) = *s.at(from)
		*s.at(from) = entry[K]{}
	} else {
		s.unlinkFree(top)
	}
	s.high--
	if s.high&(pageSize-1) == 0 {
		last := len(s.pages) - 1
		s.pages[last] = nil
		s.pages = s.pages[:last]
	}
	return from, to
}
