// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "math"

// recents is how many held keys Done looks at before it hashes.
const recents = 8

// keptGrips is for how many held keys room is kept.
const keptGrips = 1024

// state is the bookkeeping of a queue: which keys there are, which of them are dirty, held, delayed, and in what order. It has
// no lock, clock or goroutine; times are nanoseconds that the caller reads.
type state[K comparable] struct {
	delays[K]
	index table
	ready list    // dirty and not held, in the order they became so; empty where there is an order
	order *order  // of the ready keys, from the first priority or flow on
	held  list    // held, in the order they were handed out
	grips []grip  // of the held entries, and free ones
	loose []int64 // places of the free ones
	again int     // how many are dirty and held
	shut  bool    // nothing new is taken

	adds, retries uint64
	takenSum      int64 // sum over the held keys of the time they were handed out; it may wrap, differences stay right
	latency, work Histogram
	answered      Histogram
}

// find returns the entry of key, or 0.
func (s *state[K]) find(key K, hash uint32) number {
	if s.index.count == 0 {
		return 0
	}
	mask := s.index.mask()
	for i := s.index.home(hash); ; i = (i + 1) & mask {
		c := s.index.slots[i]
		if c.n == 0 {
			return 0
		}
		if c.hash == hash && s.at(c.n).key == key {
			return c.n
		}
	}
}

// recent looks for key among those handed out last, which is cheaper than hashing it. It says whether the answer is sure: a
// key that it does not find can still be held if more than a few are.
func (s *state[K]) recent(key K) (n number, sure bool) {
	n = s.held.tail
	for range recents {
		if n == 0 || s.at(n).key == key {
			return n, true
		}
		n = s.at(n).prev
	}
	return 0, n == 0
}

// wish is what an add asks for beside its key.
type wish struct {
	flow     string // of the key, which is always the same
	priority int8
	keep     bool // the priority that the key has, if it is held or waits
}

// ensure returns the entry of key, a new one if there is none.
func (s *state[K]) ensure(key K, hash uint32, flow string) number {
	if n := s.find(key, hash); n != 0 {
		return n
	}
	return s.enter(key, hash, flow)
}

func (s *state[K]) enter(key K, hash uint32, flow string) number {
	n := s.alloc()
	e := s.at(n)
	e.key, e.hash, e.flags = key, hash, used
	if flow != "" {
		e.flow = s.arranged().flows.join(flow)
	}
	if key != key { // true for NaN
		e.flags |= strange
		return n
	}
	s.index.insert(hash, n)
	return n
}

// add makes key dirty. It reports whether it was not so before, and whether that made it ready: the caller then stamps it.
func (s *state[K]) add(key K, hash uint32, w wish) (n number, added, ready bool) {
	if s.shut {
		return 0, false, false
	}
	if n = s.find(key, hash); n == 0 {
		n = s.enter(key, hash, w.flow)
	}
	if s.at(n).priority != w.priority {
		s.grant(n, w)
	}
	added, ready = s.mark(n)
	return n, added, ready
}

func (s *state[K]) mark(n number) (added, ready bool) {
	e := s.at(n)
	if e.is(dirty) {
		return false, false
	}
	e.flags |= dirty
	s.adds++
	if e.is(held) {
		s.count(n, 1)
		return true, false
	}
	if s.order == nil {
		s.push(&s.ready, n)
	} else {
		s.enqueue(n)
	}
	return true, true
}

// stamp notes when entry n became ready.
func (s *state[K]) stamp(n number, now int64) { s.at(n).since = now }

// ask notes when the first Add came that the dirty entry n is dirty for. It is called once, while n is not asked.
func (s *state[K]) ask(n number, now int64) {
	e := s.at(n)
	e.flags |= asked
	if e.is(held) {
		e.since = now
		return
	}
	e.first = now
}

// unasked reports whether the Add that returned n is to ask.
func (s *state[K]) unasked(n number) bool { return n != 0 && !s.at(n).is(asked) }

// hold is a key in a worker's hands. The time tells this hold of the key from a later one.
type hold[K comparable] struct {
	key   K
	n     number // 0: nothing is held
	taken int64
}

// take hands out the key whose turn it is, without priorities and flows the one that has been ready longest, and says for how
// long it was.
func (s *state[K]) take(h *hold[K], now int64) (waited int64, ok bool) {
	n := s.ready.head
	switch {
	case n != 0:
		s.remove(&s.ready, n)
	case s.order != nil:
		n = s.dequeue()
	}
	if n == 0 {
		return 0, false
	}
	e := s.at(n)
	e.flags &^= dirty
	waited = max(0, now-e.since)
	s.latency.observe(waited)
	h.key, h.n, h.taken = e.key, n, now
	if e.is(strange) {
		h.n = 0
		s.drop(n)
		return waited, true
	}
	if e.is(asked) {
		e.flags = e.flags&^asked | answering
	}
	e.flags |= held
	e.first = s.seize(grip{taken: now, first: e.first})
	s.takenSum += now
	s.push(&s.held, n)
	return waited, true
}

// grip returns that of entry n, which must be held.
func (s *state[K]) grip(n number) grip { return s.grips[s.at(n).first] }

// seize stores g and returns its place.
func (s *state[K]) seize(g grip) (place int64) {
	if last := len(s.loose) - 1; last >= 0 {
		place, s.loose = s.loose[last], s.loose[:last]
		s.grips[place] = g
		return place
	}
	s.grips = append(s.grips, g)
	return int64(len(s.grips) - 1)
}

// loosen takes the grip at place away. With the last of many their room is given back.
func (s *state[K]) loosen(place int64) grip {
	g := s.grips[place]
	if s.held.len == 0 && cap(s.grips) > keptGrips {
		s.grips, s.loose = nil, nil
		return g
	}
	s.loose = append(s.loose, place)
	return g
}

// holds reports whether h is still what its worker was given. Entries move, so h may be found elsewhere.
func (s *state[K]) holds(h *hold[K], hash func(K) uint32) bool {
	if h.n == 0 {
		return false
	}
	if h.n < s.high {
		if e := s.at(h.n); e.is(held) && s.grip(h.n).taken == h.taken && e.key == h.key {
			return true
		}
	}
	h.n = s.find(h.key, hash(h.key))
	return h.n != 0 && s.at(h.n).is(held) && s.grip(h.n).taken == h.taken
}

// done ends the hold of entry n, which must be held, and says how long it lasted. A key added meanwhile is ready again.
func (s *state[K]) done(n number, now int64) (worked int64) {
	e := s.at(n)
	e.flags &^= held
	s.remove(&s.held, n)
	g := s.loosen(e.first)
	s.takenSum -= g.taken
	worked = max(0, now-g.taken)
	s.work.observe(worked)
	if e.is(answering) {
		e.flags &^= answering
		s.answered.observe(max(0, now-g.first))
	}
	if e.is(dirty) {
		s.count(n, -1)
		e.first = e.since // of use if it is asked
		e.since = now
		s.enqueue(n)
		return worked
	}
	s.drop(n)
	return worked
}

// delay gives key a deadline, unless it has an earlier one.
func (s *state[K]) delay(key K, hash uint32, w wish, due, now int64) {
	n := s.ensure(key, hash, w.flow)
	e := s.at(n)
	if e.priority != w.priority {
		s.grant(n, w)
	}
	if !e.is(dirty) && e.place == 0 {
		e.since = now
	}
	s.schedule(n, due)
}

// promote makes up to limit keys dirty that are due, and says how many of them were not so before.
func (s *state[K]) promote(now int64, limit int) (added int) {
	for ; limit > 0 && s.due(now); limit-- {
		n := s.owners[0]
		s.unschedule(n)
		fresh, ready := s.mark(n)
		if fresh {
			added++
		}
		if ready {
			s.stamp(n, now)
		}
	}
	return added
}

// withdraw takes the deadline of key away. It reports whether there was one.
func (s *state[K]) withdraw(key K, hash uint32) bool {
	n := s.find(key, hash)
	if n == 0 || !s.unschedule(n) {
		return false
	}
	s.drop(n)
	return true
}

// fail counts one failure more of key and returns how many there are.
func (s *state[K]) fail(key K, hash uint32, flow string) int {
	if key != key { // true for NaN: its count could never be found again
		return 1
	}
	e := s.at(s.ensure(key, hash, flow))
	if e.failures < math.MaxInt32 {
		e.failures++
	}
	return int(e.failures)
}

func (s *state[K]) forget(key K, hash uint32) {
	if n := s.find(key, hash); n != 0 {
		s.at(n).failures = 0
		s.drop(n)
	}
}

func (s *state[K]) failures(key K, hash uint32) int {
	if n := s.find(key, hash); n != 0 {
		return int(s.at(n).failures)
	}
	return 0
}

// dropDelays drops up to limit deadlines, and says whether any are left.
func (s *state[K]) dropDelays(limit int) (more bool) {
	for last := len(s.owners) - 1; last >= 0 && limit > 0; last, limit = last-1, limit-1 {
		n := s.owners[last]
		s.unschedule(n)
		s.drop(n)
	}
	return len(s.owners) > 0
}

// due reports whether a deadline has been reached at now. None is after the shutdown.
func (s *state[K]) due(now int64) bool { return !s.shut && s.delays.due(now) }

// exhausted reports that nothing is left to hand out, and that nothing held will come back.
func (s *state[K]) exhausted() bool { return s.shut && s.backlog() == 0 && s.again == 0 }

// drained reports that all there was has been done.
func (s *state[K]) drained() bool { return s.backlog() == 0 && s.held.len == 0 }

// drop lets go of entry n if nothing is left to remember of its key. While few of the entries are live it gives up four of the
// highest, as many as the bound has come down, so that a slab that was full is given back as it empties, with no pause.
func (s *state[K]) drop(n number) {
	e := s.at(n)
	if !e.idle() {
		return
	}
	if !e.is(strange) {
		s.index.remove(e.hash, n)
	}
	if e.flow != 0 {
		s.order.flows.leave(e.flow)
	}
	s.release(n)
	for range 4 {
		if !s.sparse() {
			return
		}
		if from, to := s.compact(); to != 0 {
			s.mend(from, to)
		}
	}
}

// mend renames all that names an entry which has moved.
func (s *state[K]) mend(from, to number) {
	e := s.at(to)
	if !e.is(strange) {
		s.index.rename(e.hash, from, to)
	}
	if e.place != 0 {
		s.owners[e.place-1] = to
	}
	switch {
	case e.is(held):
		s.renamed(&s.held, to)
	case e.is(dirty):
		s.renamed(s.line(to), to)
	}
}
