// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// list is a FIFO list of entries, linked through the entries.
type list struct {
	head, tail number
	len        int
}

func (s *slab[K]) push(l *list, n number) {
	e := s.at(n)
	e.next, e.prev = 0, l.tail
	if l.tail != 0 {
		s.at(l.tail).next = n
	} else {
		l.head = n
	}
	l.tail = n
	l.len++
}

func (s *slab[K]) remove(l *list, n number) {
	e := s.at(n)
	if e.prev != 0 {
		s.at(e.prev).next = e.next
	} else {
		l.head = e.next
	}
	if e.next != 0 {
		s.at(e.next).prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.next, e.prev = 0, 0
	l.len--
}

// renamed fixes the links of the list after an entry has moved to to.
func (s *slab[K]) renamed(l *list, to number) {
	e := s.at(to)
	if e.prev != 0 {
		s.at(e.prev).next = to
	} else {
		l.head = to
	}
	if e.next != 0 {
		s.at(e.next).prev = to
	} else {
		l.tail = to
	}
}
