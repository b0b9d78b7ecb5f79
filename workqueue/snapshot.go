// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"slices"
	"time"
)

// State says where a key stands.
type State string

// The states of a key.
const (
	Ready     State = "ready"          // waits for a worker
	Held      State = "held"           // in a worker's hands
	HeldDirty State = "held and dirty" // in a worker's hands, and ready again after Done
	Delayed   State = "delayed"        // waits for its deadline
	Counted   State = "counted"        // only its failures are remembered, until Forget
)

// KeyState is what a queue knows of one key.
type KeyState[K comparable] struct {
	Key      K
	State    State
	Age      time.Duration // how long it has been ready, held, or delayed; 0 if counted
	Attempts int           // failures since the last Forget
	Due      time.Time     // its deadline, which a key that is ready or held may have too; zero if none waits
}

// Snapshot is a queue at one moment.
type Snapshot[K comparable] struct {
	Name         string
	Taken        time.Time
	ShuttingDown bool
	Keys         []KeyState[K] // ready ones in order, held ones longest first, delayed ones by deadline, counted ones
}

// Snapshot returns every key and where it stands. It copies all keys under the queue's lock: use Stats for numbers alone.
func (q *Queue[K]) Snapshot() Snapshot[K] {
	taken, now := time.Now(), q.now()
	q.mu.Lock()
	entries, heap := q.mu.state.copy()
	ready, held := q.mu.state.ready.len, q.mu.state.held.len
	shut := q.mu.state.shut
	q.mu.Unlock()

	snap := Snapshot[K]{Name: q.name, Taken: taken, ShuttingDown: shut, Keys: make([]KeyState[K], len(entries))}
	for i := range entries {
		e := &entries[i]
		k := &snap.Keys[i]
		*k = KeyState[K]{Key: e.key, State: e.state(), Attempts: int(e.failures)}
		if k.State != Counted {
			k.Age = time.Duration(max(0, now-e.start()))
		}
		if e.place != 0 {
			k.Due = taken.Add(time.Duration(heap[e.place-1].due - now))
		}
	}
	slices.SortStableFunc(snap.Keys[ready+held:], func(a, b KeyState[K]) int {
		if a.State != b.State && a.State == Counted {
			return 1
		}
		if a.State != b.State {
			return -1
		}
		return a.Due.Compare(b.Due)
	})
	return snap
}

// copy returns the entries in use, first the ready then the held ones in their order, and the heap.
func (s *state[K]) copy() ([]entry[K], []deadline) {
	entries := make([]entry[K], 0, s.live)
	for _, l := range []list{s.ready, s.held} {
		for n := l.head; n != 0; n = s.at(n).next {
			entries = append(entries, *s.at(n))
		}
	}
	for n := number(1); n < s.high && len(entries) < s.live; n++ {
		if e := s.at(n); e.is(used) && !e.is(dirty|held) {
			entries = append(entries, *e)
		}
	}
	return entries, slices.Clone(s.heap)
}

func (e *entry[K]) state() State {
	switch {
	case e.is(held) && e.is(dirty):
		return HeldDirty
	case e.is(held):
		return Held
	case e.is(dirty):
		return Ready
	case e.place != 0:
		return Delayed
	default:
		return Counted
	}
}

// start is when the state of the entry began.
func (e *entry[K]) start() int64 {
	if e.is(held) {
		return e.taken
	}
	return e.since
}

// Stats returns the queue's numbers.
func (q *Queue[K]) Stats() Stats {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.mu.state
	st := Stats{
		Name:    q.name,
		Ready:   s.ready.len,
		Held:    s.held.len,
		Dirty:   s.again,
		Delayed: len(s.heap),
		Keys:    s.live,
		Adds:    s.adds,
		Retries: s.retries,
		Latency: s.latency,
		Work:    s.work,
	}
	if n := s.held.head; n != 0 {
		st.Unfinished = time.Duration(max(0, int64(s.held.len)*now-s.takenSum))
		st.OldestHeld = time.Duration(max(0, now-s.at(n).taken))
	}
	return st
}
