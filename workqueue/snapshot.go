// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"slices"
	"time"
)

// State is the state of a key.
type State string

// The states of a key.
const (
	Ready     State = "ready"          // waiting for a worker
	Held      State = "held"           // a worker has it
	HeldDirty State = "held and dirty" // a worker has it, and it becomes ready again after Done
	Delayed   State = "delayed"        // waiting for its deadline
	Counted   State = "counted"        // only its failures are remembered, until Forget
)

// KeyState describes one key.
type KeyState[K comparable] struct {
	Key      K
	State    State
	Age      time.Duration // time in this state; 0 if counted
	Attempts int           // failures since the last Forget
	Due      time.Time     // deadline, also of a ready or held key; zero: none
	Priority int           // of the pending work, or with which it was handed out
	Flow     string        // by FairBy
}

// FlowState describes one flow.
type FlowState struct {
	Flow    string
	Ready   int           // keys waiting for a worker
	Held    int           // keys that workers have
	Delayed int           // other keys with a deadline
	Oldest  time.Duration // longest wait of a ready key
}

// Snapshot is the state of a queue at one moment.
type Snapshot[K comparable] struct {
	Name         string
	Taken        time.Time
	ShuttingDown bool
	// Keys are all known keys: ready ones in the order in which they are handed out if nothing else is added, held ones
	// longest first, delayed ones by deadline, then counted ones.
	Keys []KeyState[K]
	// Flows with keys, most ready ones first. Nil without FairBy.
	Flows []FlowState
}

// Snapshot returns the state of every key. It copies all keys under the queue's lock: for numbers alone use Stats.
func (q *Queue[K]) Snapshot() Snapshot[K] {
	taken, now := time.Now(), q.now()
	q.mu.Lock()
	entries, dues := q.mu.state.copy()
	ready, held := q.mu.state.backlog(), q.mu.state.held.len
	flows := q.mu.state.flowNames()
	shut := q.mu.state.shut
	q.mu.Unlock()

	snap := Snapshot[K]{Name: q.name, Taken: taken, ShuttingDown: shut, Keys: make([]KeyState[K], len(entries))}
	for i := range entries {
		e := &entries[i]
		k := &snap.Keys[i]
		*k = KeyState[K]{Key: e.key, State: e.state(), Attempts: int(e.failures), Priority: int(e.priority)}
		if e.flow != 0 {
			k.Flow = flows[e.flow]
		}
		if k.State != Counted {
			k.Age = time.Duration(max(0, now-e.since))
		}
		if e.place != 0 {
			k.Due = taken.Add(time.Duration(dues[e.place-1] - now))
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
	if q.flow != nil {
		snap.Flows = flowStates(snap.Keys)
	}
	return snap
}

func flowStates[K comparable](keys []KeyState[K]) []FlowState {
	byName := map[string]*FlowState{}
	for i := range keys {
		k := &keys[i]
		f := byName[k.Flow]
		if f == nil {
			f = &FlowState{Flow: k.Flow}
			byName[k.Flow] = f
		}
		switch k.State {
		case Ready:
			f.Ready++
			f.Oldest = max(f.Oldest, k.Age)
		case Held, HeldDirty:
			f.Held++
		case Delayed:
			f.Delayed++
		case Counted:
		}
	}
	all := make([]FlowState, 0, len(byName))
	for _, f := range byName {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b FlowState) int {
		return cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Flow, b.Flow))
	})
	return all
}

// copy returns the deadlines and the entries in use, first the ready, then the held ones in order, each with the start of its
// state.
func (s *state[K]) copy() ([]entry[K], []int64) {
	entries := make([]entry[K], 0, s.live)
	s.inOrder(func(n number) { entries = append(entries, *s.at(n)) })
	for n := s.held.head; n != 0; n = s.at(n).next {
		e := *s.at(n)
		e.since = s.heldStates[e.first].taken
		entries = append(entries, e)
	}
	for n := number(1); n < s.high && len(entries) < s.live; n++ {
		if e := s.at(n); e.is(used) && !e.is(dirty|held) {
			entries = append(entries, *e)
		}
	}
	return entries, slices.Clone(s.dues)
}

func (s *state[K]) flowNames() []string {
	if s.order == nil {
		return nil
	}
	names := make([]string, len(s.order.flows.all))
	for i, f := range s.order.flows.all {
		names[i] = f.name
	}
	return names
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

// mostLines is how many lines Waiting and Oldest look at.
const mostLines = 1024

// Waiting returns the number of ready keys, and how long one has waited at most. It is cheaper than Stats. Keys of more than
// 1,024 flows, and those whose priority was raised, may have waited longer.
func (q *Queue[K]) Waiting() (ready int, oldest time.Duration) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.mu.state
	n := s.ready.head
	if s.order != nil {
		n = oldestIn(s.order, s.at)
	}
	if n != 0 {
		oldest = time.Duration(max(0, now-s.at(n).since))
	}
	return s.backlog(), oldest
}

// Oldest returns the key that has waited as long as Waiting says. ok is false if no key is ready, and in a queue without
// priorities and flows, where none is passed over.
func (q *Queue[K]) Oldest() (k KeyState[K], ok bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.mu.state
	if s.order == nil {
		return k, false
	}
	n := oldestIn(s.order, s.at)
	if n == 0 {
		return k, false
	}
	e := s.at(n)
	k = KeyState[K]{Key: e.key, State: Ready, Age: time.Duration(max(0, now-e.since)), Attempts: int(e.failures), Priority: int(e.priority)}
	k.Flow = s.order.flows.name(e.flow)
	return k, true
}

// oldestIn returns the entry that has been ready for longest of those that are first in a line; 0: none is ready.
func oldestIn[K comparable](o *order, at func(number) *entry[K]) (oldest number) {
	for _, l := range o.lines[:min(len(o.lines), mostLines)] {
		if l.head != 0 && (oldest == 0 || at(l.head).since < at(oldest).since) {
			oldest = l.head
		}
	}
	return oldest
}

// Stats returns the queue's numbers.
func (q *Queue[K]) Stats() Stats {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.mu.state
	st := Stats{
		Name:    q.name,
		Ready:   s.backlog(),
		Held:    s.held.len,
		Dirty:   s.again,
		Delayed: len(s.dues),
		Keys:    s.live,
		Adds:    s.adds,
		Retries: s.retries,
		Latency: s.latency.histogram(),
		Work:    s.work.histogram(),

		Answered: s.answered.histogram(),
	}
	if s.order != nil {
		st.Flows = len(s.order.flows.names)
		st.Priorities = s.order.depths()
	}
	if n := s.held.head; n != 0 {
		st.Unfinished = time.Duration(max(0, int64(s.held.len)*now-s.takenSum))
		st.OldestHeld = time.Duration(max(0, now-s.heldOf(n).taken))
	}
	return st
}
