// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"iter"
	"runtime"
	"time"
)

// Keys yields keys until the queue has been shut down and is empty. The body of the loop holds the key: the key is done when
// the body ends, also by break, return or panic. Any number of goroutines may range over one queue, each over its own Keys.
func (q *Queue[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		var h hold[K]
		defer func() { q.letGo(&h) }()
		for q.next(&h) {
			if !yield(h.key) {
				return
			}
			if q.observer != nil {
				q.letGo(&h) // notify before the wait for the next key, not after
			}
		}
	}
}

// letGo ends the hold, if it still is one.
func (q *Queue[K]) letGo(h *hold[K]) {
	if h.n == 0 {
		return
	}
	now := q.now()
	q.mu.Lock()
	holds := q.mu.state.holds(h, q.hash)
	n := h.n
	h.n = 0
	if !holds {
		q.mu.Unlock()
		return
	}
	q.unlockWithDone(n, now)
}

// next ends the hold h, if it is one, and makes it hold the next key, under one lock. It returns false when there are no more
// keys.
func (q *Queue[K]) next(h *hold[K]) bool {
	now := q.now()
	q.mu.Lock()
	s := &q.mu.state
	if h.n != 0 && s.holds(h, q.hash) {
		s.done(h.n, now)
		q.announceEndLocked()
	}
	h.n = 0
	spun := false
	for {
		added := s.promote(now, batch) // the timer's callback may wait for a processor on a busy machine
		waited, ok := s.take(h, now)
		if ok {
			q.announceEndLocked()
			q.unlockAndWake()
			if q.observer != nil {
				q.observeAdded(added)
				q.observer.HandedOut(time.Duration(waited))
			}
			return true
		}
		if s.exhausted() {
			q.mu.Unlock()
			return false
		}
		if added > 0 && q.observer != nil { // deadlines of held keys
			q.mu.Unlock()
			q.observeAdded(added)
			q.mu.Lock()
		} else {
			spun = q.waitLocked(spun)
		}
		now = q.now()
	}
}

func (q *Queue[K]) observeAdded(n int) {
	for range n {
		q.observer.Added()
	}
}

// announceEndLocked wakes those who wait for the end of the queue, once a shutdown has progressed that far.
func (q *Queue[K]) announceEndLocked() {
	if q.mu.state.exhausted() {
		q.work.Broadcast()
	}
	if q.mu.state.shut && q.mu.state.drained() {
		q.idle.Broadcast()
	}
}

// waitLocked releases the lock until there may be a key to hand out. A worker first spins briefly, if no other does. If
// deadlines follow closely, it handles the next one itself: a processor that sleeps until a timer fires wakes up to a
// millisecond late.
func (q *Queue[K]) waitLocked(spun bool) bool {
	if spun || q.mu.spinning {
		q.mu.parked++
		q.work.Wait()
		q.mu.parked--
		q.mu.waking = false
		return true
	}
	q.mu.spinning = true
	q.look.Store(false)
	q.mu.Unlock()
	for i := 0; i < spinRounds && !q.look.Load(); i++ {
		runtime.Gosched()
	}
	q.mu.Lock()
	q.mu.spinning = false
	return true
}

// unlockAndWake releases the lock and makes sure that a worker looks if a key is ready. A spinning worker will look.
// Otherwise at most one woken worker is on its way at a time, and wakes the next when it takes a key and leaves others. The
// operating system may have preempted it, so another is woken when the backlog has doubled meanwhile.
func (q *Queue[K]) unlockAndWake() {
	backlog := q.mu.state.backlog()
	if backlog == 0 {
		q.mu.alarm = alarming
		q.mu.Unlock()
		return
	}
	spinning := q.mu.spinning
	wake := !spinning && !q.mu.waking
	if backlog >= q.mu.alarm {
		q.mu.alarm = 2 * backlog
		wake = true
	}
	if wake = wake && q.mu.parked > 0; wake {
		q.mu.waking = true
	}
	q.mu.Unlock()
	if spinning && !q.look.Load() {
		q.look.Store(true)
	}
	if wake {
		q.work.Signal()
	}
}
