// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"time"
)

// AddAfter makes key ready when d has passed, never before. With d of zero or below it is Add. Of two deadlines the earlier one
// stays. After ShutDown AddAfter does nothing.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	q.addAfter(key, q.hash(key), q.now(), d)
}

// AddRateLimited counts a failure of key and makes it ready after the wait its RateLimiter asks for. After ShutDown
// AddRateLimited does nothing.
func (q *Queue[K]) AddRateLimited(key K) {
	hash := q.hash(key)
	now := q.now()
	q.mu.Lock()
	if q.mu.state.shut {
		q.mu.Unlock()
		return
	}
	failures := q.mu.state.fail(key, hash)
	q.mu.Unlock()
	q.addAfter(key, hash, now, q.limiter.Delay(q.base.Add(time.Duration(now)), failures))
}

func (q *Queue[K]) addAfter(key K, hash uint32, now int64, d time.Duration) {
	q.mu.Lock()
	s := &q.mu.state
	if s.shut {
		q.mu.Unlock()
		return
	}
	s.retries++
	added := false
	if d <= 0 {
		var n number
		var ready bool
		if n, added, ready = s.add(key, hash); ready {
			s.stamp(n, now)
		}
	} else {
		s.delay(key, hash, now+min(int64(d), math.MaxInt64-1-now), now)
		q.armLocked(now)
	}
	q.unlockAndWake()
	if q.observer != nil {
		q.observer.Retried()
		if added {
			q.observer.Added()
		}
	}
}

// Forget resets the count of key's failures. Its deadline, if one waits, stays.
func (q *Queue[K]) Forget(key K) {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.state.forget(key, hash)
}

// NumRequeues returns how often AddRateLimited has been called for key since its last Forget.
func (q *Queue[K]) NumRequeues(key K) int {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.failures(key, hash)
}

// Withdraw takes the deadline of key away, and reports whether one waited. A key that is ready or held stays so, and its
// failures stay counted.
func (q *Queue[K]) Withdraw(key K) bool {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.withdraw(key, hash)
}

// armLocked sets the timer for the earliest deadline, unless it fires by then anyway.
func (q *Queue[K]) armLocked(now int64) {
	heap := q.mu.state.heap
	if q.mu.state.shut || len(heap) == 0 || heap[0].due >= q.mu.armed {
		return
	}
	q.mu.armed = heap[0].due
	d := time.Duration(max(1, heap[0].due-now))
	if q.mu.timer == nil {
		q.mu.timer = time.AfterFunc(d, q.fire)
		return
	}
	q.mu.timer.Reset(d)
}

// fire moves the keys that are due, a batch at a time, so that workers and producers get the lock in between.
func (q *Queue[K]) fire() {
	for more := true; more; {
		now := q.now()
		q.mu.Lock()
		s := &q.mu.state
		q.mu.armed = unarmed
		added := s.promote(now, batch)
		if more = s.due(now); !more {
			q.armLocked(now)
		}
		q.unlockAndWake()
		for i := 0; q.observer != nil && i < added; i++ {
			q.observer.Added()
		}
	}
}
