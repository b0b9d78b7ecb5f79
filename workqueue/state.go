// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "math"

// recents is how many held keys Done checks before it hashes.
const recents = 8

// keptStates is the number of held keys whose memory is kept.
const keptStates = 1024

// state is the bookkeeping of a queue: which keys exist, which are dirty, held or delayed, and in what order. It has no lock,
// clock or goroutine; times are arguments, in nanoseconds.
type state[K comparable] struct {
	delays[K]
	index      table
	ready      list        // dirty and not held, in order; unused if there is an order
	order      *order      // of the ready keys, since the first priority or flow
	held       list        // in the order in which they were handed out
	heldStates []heldState // of the held entries, and free ones
	freeStates []int64     // positions of the free ones
	again      int         // dirty and held keys
	shut       bool        // new keys are ignored

	adds, retries uint64
	takenSum      int64 // sum of the hand-out times of the held keys; it may wrap, differences stay correct
	latency, work times
	answered      times
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

// recent searches key among the keys handed out last, which is cheaper than hashing it. sure: the result is final; otherwise
// the key can still be held.
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

// addParams has the parameters of an add besides the key.
type addParams struct {
	flow     string // always the same for one key
	priority int8
	keep     bool // keep the priority of a held or waiting key
}

// ensure returns the entry of key, creating it if needed.
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
		e.flags |= notEqualItself
		return n
	}
	s.index.insert(hash, n)
	return n
}

// add makes key dirty. It reports whether it was not dirty before, and whether it became ready: the caller then stamps it.
func (s *state[K]) add(key K, hash uint32, w addParams) (n number, added, ready bool) {
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

// stamp records when entry n became ready.
func (s *state[K]) stamp(n number, now int64) { s.at(n).since = now }

// ask records the time of the first Add for the dirty entry n. It is called once, while n is not asked.
func (s *state[K]) ask(n number, now int64) {
	e := s.at(n)
	e.flags |= asked
	if e.is(held) {
		e.since = now
		return
	}
	e.first = now
}

// unasked reports whether the caller of the Add that returned n must call ask.
func (s *state[K]) unasked(n number) bool { return n != 0 && !s.at(n).is(asked) }

// hold is a key held by a worker. taken distinguishes it from later holds of the key.
type hold[K comparable] struct {
	key   K
	n     number // 0: none
	taken int64
	// priority that it was handed out with
	priority int8
}

// take hands out the next key, without priorities and flows the one that has been ready longest, and returns how long it was
// ready.
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
	h.key, h.n, h.taken, h.priority = e.key, n, now, e.priority
	if e.is(notEqualItself) {
		h.n = 0
		s.drop(n)
		return waited, true
	}
	if e.is(asked) {
		e.flags = e.flags&^asked | answering
	}
	e.flags |= held
	e.first = s.allocHeld(heldState{taken: now, first: e.first})
	s.takenSum += now
	s.push(&s.held, n)
	return waited, true
}

// heldOf returns the heldState of entry n, which must be held.
func (s *state[K]) heldOf(n number) heldState { return s.heldStates[s.at(n).first] }

// allocHeld stores g and returns its position.
func (s *state[K]) allocHeld(g heldState) (place int64) {
	if last := len(s.freeStates) - 1; last >= 0 {
		place, s.freeStates = s.freeStates[last], s.freeStates[:last]
		s.heldStates[place] = g
		return place
	}
	s.heldStates = append(s.heldStates, g)
	return int64(len(s.heldStates) - 1)
}

// freeHeld frees the heldState at place. After the last of many their memory is freed.
func (s *state[K]) freeHeld(place int64) heldState {
	g := s.heldStates[place]
	if s.held.len == 0 && cap(s.heldStates) > keptStates {
		s.heldStates, s.freeStates = nil, nil
		return g
	}
	s.freeStates = append(s.freeStates, place)
	return g
}

// holds reports whether h is still valid. Entries move, so it may update h.
func (s *state[K]) holds(h *hold[K], hash func(K) uint32) bool {
	if h.n == 0 {
		return false
	}
	if h.n < s.high {
		if e := s.at(h.n); e.is(held) && s.heldOf(h.n).taken == h.taken && e.key == h.key {
			return true
		}
	}
	h.n = s.find(h.key, hash(h.key))
	return h.n != 0 && s.at(h.n).is(held) && s.heldOf(h.n).taken == h.taken
}

// done ends the hold of entry n, which must be held, and returns its duration. A key added meanwhile becomes ready again.
func (s *state[K]) done(n number, now int64) (worked int64) {
	e := s.at(n)
	e.flags &^= held
	s.remove(&s.held, n)
	g := s.freeHeld(e.first)
	s.takenSum -= g.taken
	worked = max(0, now-g.taken)
	s.work.observe(worked)
	if e.is(answering) {
		e.flags &^= answering
		s.answered.observe(max(0, now-g.first))
	}
	if e.is(dirty) {
		s.count(n, -1)
		e.first = e.since // used if it is asked
		e.since = now
		s.enqueue(n)
		return worked
	}
	s.drop(n)
	return worked
}

// delay gives key a deadline, unless it has an earlier one.
func (s *state[K]) delay(key K, hash uint32, w addParams, due, now int64) {
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

// promote makes up to limit due keys dirty, and returns how many of them were not dirty before.
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

// withdraw removes the deadline of key, and reports whether there was one.
func (s *state[K]) withdraw(key K, hash uint32) bool {
	n := s.find(key, hash)
	if n == 0 || !s.unschedule(n) {
		return false
	}
	s.drop(n)
	return true
}

// cancel removes the pending work and the deadline of key unless it is held, and reports whether there was either, and
// whether it was ready.
func (s *state[K]) cancel(key K, hash uint32) (canceled, ready bool) {
	n := s.find(key, hash)
	if n == 0 || s.at(n).is(held) || !s.at(n).waits() {
		return false, false
	}
	if ready = s.at(n).is(dirty); ready {
		s.unqueue(n)
		s.at(n).flags &^= dirty | asked
	}
	s.unschedule(n)
	s.drop(n)
	return true, ready
}

// fail counts a failure of key and returns the count.
func (s *state[K]) fail(key K, hash uint32, flow string) int {
	if key != key { // true for NaN: its count could not be found again
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

// dropDelays drops up to limit deadlines, and reports whether any are left.
func (s *state[K]) dropDelays(limit int) (more bool) {
	for last := len(s.owners) - 1; last >= 0 && limit > 0; last, limit = last-1, limit-1 {
		n := s.owners[last]
		s.unschedule(n)
		s.drop(n)
	}
	return len(s.owners) > 0
}

// due reports whether a deadline is reached at now. After the shutdown none is.
func (s *state[K]) due(now int64) bool { return !s.shut && s.delays.due(now) }

// exhausted reports whether nothing is left to hand out, now or later.
func (s *state[K]) exhausted() bool { return s.shut && s.backlog() == 0 && s.again == 0 }

// drained reports whether all keys are done.
func (s *state[K]) drained() bool { return s.backlog() == 0 && s.held.len == 0 }

// drop frees entry n if there is nothing to remember about its key. While few entries are live it removes up to four of the
// highest, so that a slab shrinks gradually as it empties, without a pause.
func (s *state[K]) drop(n number) {
	e := s.at(n)
	if !e.idle() {
		return
	}
	if !e.is(notEqualItself) {
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

// mend updates all references to an entry that has moved.
func (s *state[K]) mend(from, to number) {
	e := s.at(to)
	if !e.is(notEqualItself) {
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
