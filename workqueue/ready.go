// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// arranged returns the order of the ready keys, created for the first priority or flow. Until then a single list is used.
func (s *state[K]) arranged() *order {
	if s.order != nil {
		return s.order
	}
	s.order = newOrder()
	if s.ready.len > 0 {
		*s.order.join(0, 0) = s.ready
		s.order.ready = s.ready.len
	}
	zero := s.order.level(0)
	zero.ready, zero.again = s.ready.len, s.again
	s.ready = list{}
	return s.order
}

// backlog returns the number of ready keys.
func (s *state[K]) backlog() int {
	if s.order != nil {
		return s.order.ready
	}
	return s.ready.len
}

func (s *state[K]) line(n number) *list {
	if s.order == nil {
		return &s.ready
	}
	e := s.at(n)
	return &s.order.lines[s.order.find(e.flow, e.priority)].list
}

func (s *state[K]) enqueue(n number) {
	if s.order == nil {
		s.push(&s.ready, n)
		return
	}
	e := s.at(n)
	s.push(s.order.join(e.flow, e.priority), n)
}

// unqueue removes the ready entry n from its line.
func (s *state[K]) unqueue(n number) {
	if s.order == nil {
		s.remove(&s.ready, n)
		return
	}
	l := s.order.find(s.at(n).flow, s.at(n).priority)
	s.remove(&s.order.lines[l].list, n)
	s.order.leave(l)
}

// dequeue removes and returns the next entry, 0 if none is ready. There must be an order.
func (s *state[K]) dequeue() number {
	o := s.order
	l := o.next()
	if l == 0 {
		return 0
	}
	n := o.lines[l].head
	s.remove(&o.lines[l].list, n)
	o.turned(l)
	return n
}

// grant gives entry n the requested priority, which differs from its own. A waiting key keeps a higher one.
func (s *state[K]) grant(n number, w addParams) {
	e := s.at(n)
	switch {
	case w.keep && (e.is(held) || e.waits()):
	case !e.waits():
		s.arranged()
		e.priority = w.priority
	case w.priority > e.priority:
		s.arranged()
		s.raise(n, w.priority)
	}
}

// raise gives entry n, which waits, another priority. A ready key moves to the end of the line.
func (s *state[K]) raise(n number, p int8) {
	e := s.at(n)
	switch {
	case e.is(dirty) && e.is(held):
		s.count(n, -1)
		e.priority = p
		s.count(n, 1)
	case e.is(dirty):
		s.unqueue(n)
		e.priority = p
		s.enqueue(n)
	default:
		e.priority = p
	}
}

// count adds by to the number of held and dirty keys, for entry n.
func (s *state[K]) count(n number, by int) {
	s.again += by
	if s.order != nil {
		s.order.level(s.at(n).priority).again += by
	}
}

// inOrder calls yield with each ready entry, in the order in which they are handed out if nothing else is added.
func (s *state[K]) inOrder(yield func(n number)) {
	if s.order == nil {
		for n := s.ready.head; n != 0; n = s.at(n).next {
			yield(n)
		}
		return
	}
	o := s.order.copy()
	for l := o.next(); l != 0; l = o.next() {
		n := o.lines[l].head
		o.lines[l].head = s.at(n).next
		o.lines[l].len--
		o.turned(l)
		yield(n)
	}
}
