// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"iter"
	"runtime"
	"time"
)

// Keys yields keys until the queue has been shut down and nothing is left. The body of the loop is the hold: the key is done
// when the body ends, by break, return or panic too. Any number of goroutines may range over one queue, each over its own Keys.
func (q *Queue[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		var h hold[K]
		defer func() { q.letGo(&h) }()
		for q.next(&h) {
			if !yield(h.key) {
				return
			}
			if q.observer != nil {
				q.letGo(&h) // told before the wait for the next key, not after
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

// next ends the hold h, if it is one, and makes it the next key's, under one lock. It reports false when there will be none.
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
		added := s.promote(now, batch) // not the timer's callback alone: on a busy machine it waits for a processor
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

// announceEndLocked wakes those who wait for the end, once a shutdown has got so far.
func (q *Queue[K]) announceEndLocked() {
	if q.mu.state.exhausted() {
		q.work.Broadcast()
	}
	if q.mu.state.shut && q.mu.state.drained() {
		q.idle.Broadcast()
	}
}

// waitLocked lets the lock go until there may be something to hand out. A worker that comes for the first time spins for a
// moment, if no other does. Where deadlines follow closely it meets the next one by itself: a processor that sleeps until a
// timer fires wakes up to a millisecond late.
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

// unlockAndWake lets the lock go, and sees to it that a worker looks if a key is ready. One that spins will look; else at most
// one is on its way at a time, and calls the next when it takes a key and leaves others. The operating system may have taken
// that one's processor away: when a backlog has doubled all the same, another is called.
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
