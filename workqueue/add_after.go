// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"time"
)

// AddOptions of AddWith. The zero value is Add.
type AddOptions struct {
	// Priority of the key: higher ones are handed out first, within the bound of W8. Values are limited to -128 to 127. A
	// ready or delayed key keeps a higher priority. controller-runtime's low priority is -100.
	Priority int
	// After is the delay before the key becomes ready, never shorter. 0 or below: none.
	After time.Duration
	// RateLimited counts a failure of the key and delays it by the RateLimiter's delay, or by After if that is above 0 and
	// shorter.
	RateLimited bool
}

// AddWith is Add, AddAfter and AddRateLimited with a priority. After ShutDown AddWith does nothing.
func (q *Queue[K]) AddWith(key K, opts AddOptions) {
	w := addParams{flow: q.flowOf(key), priority: int8(min(max(opts.Priority, math.MinInt8), math.MaxInt8))}
	if opts.RateLimited {
		q.retry(key, w, opts.After)
		return
	}
	q.schedule(key, q.hash(key), w, q.now(), opts.After, opts.After > 0)
}

// AddAfter makes key ready after d, never earlier. With d of zero or below it is Add, but a held or waiting key keeps its
// priority: a worker that requeues its key gets it with the same priority. Of two deadlines the earlier stays. After ShutDown
// AddAfter does nothing.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	q.schedule(key, q.hash(key), addParams{flow: q.flowOf(key), keep: true}, q.now(), d, true)
}

// AddRateLimited counts a failure of key and makes it ready after the RateLimiter's delay. A held or waiting key keeps its
// priority. After ShutDown AddRateLimited does nothing.
func (q *Queue[K]) AddRateLimited(key K) {
	q.retry(key, addParams{flow: q.flowOf(key), keep: true}, 0)
}

// retry counts a failure and schedules key after the RateLimiter's delay, limited to most if that is above 0.
func (q *Queue[K]) retry(key K, w addParams, most time.Duration) {
	hash := q.hash(key)
	now := q.now()
	q.mu.Lock()
	if q.mu.state.shut {
		q.mu.Unlock()
		return
	}
	failures := q.mu.state.fail(key, hash, w.flow)
	q.mu.Unlock()
	d := q.limiter.Delay(q.base.Add(time.Duration(now)), failures)
	if most > 0 {
		d = min(d, most)
	}
	q.schedule(key, hash, w, now, d, true)
}

// schedule adds key after d. retried: it counts as a retry, unlike a call without a delay.
func (q *Queue[K]) schedule(key K, hash uint32, w addParams, now int64, d time.Duration, retried bool) {
	q.mu.Lock()
	s := &q.mu.state
	if s.shut {
		q.mu.Unlock()
		return
	}
	if retried {
		s.retries++
	}
	added := false
	if d <= 0 {
		var n number
		var ready bool
		if n, added, ready = s.add(key, hash, w); ready {
			s.stamp(n, now)
		}
		if !retried && s.unasked(n) {
			s.ask(n, now)
		}
	} else {
		s.delay(key, hash, w, now+min(int64(d), math.MaxInt64-1-now), now)
		q.armLocked(now)
	}
	q.unlockAndWake()
	if q.observer == nil {
		return
	}
	if retried {
		q.observer.Retried()
	}
	if added {
		q.observer.Added()
	}
}

// Forget resets the failures of key. A deadline stays.
func (q *Queue[K]) Forget(key K) {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.state.forget(key, hash)
}

// NumRequeues returns the number of AddRateLimited calls for key since its last Forget.
func (q *Queue[K]) NumRequeues(key K) int {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.failures(key, hash)
}

// HeldDirty reports whether a worker has key and it becomes ready again after Done.
func (q *Queue[K]) HeldDirty(key K) bool {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.mu.state.find(key, hash)
	return n != 0 && q.mu.state.at(n).state() == HeldDirty
}

// Withdraw removes the deadline of key, and reports whether there was one. A ready or held key stays so, and its failures
// stay counted.
func (q *Queue[K]) Withdraw(key K) bool {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.withdraw(key, hash)
}

// Cancel removes key from the ready keys, and its deadline, and reports whether there was either. A key that a worker holds
// is left as it is. Failures stay counted. A caller that cancels because there is no more to do for the key must check that
// again afterwards: an Add just before Cancel is undone.
func (q *Queue[K]) Cancel(key K) bool {
	hash := q.hash(key)
	q.mu.Lock()
	canceled, ready := q.mu.state.cancel(key, hash)
	q.announceEndLocked()
	q.unlockAndWake()
	if o, ok := q.observer.(CancelObserver); ok && ready {
		o.Canceled()
	}
	return canceled
}

// armLocked sets the timer for the earliest deadline, unless it already fires by then.
func (q *Queue[K]) armLocked(now int64) {
	dues := q.mu.state.dues
	if q.mu.state.shut || len(dues) == 0 || dues[0] >= q.mu.armed {
		return
	}
	q.mu.armed = dues[0]
	d := time.Duration(max(1, dues[0]-now))
	if q.mu.timer == nil {
		q.mu.timer = time.AfterFunc(d, q.fire)
		return
	}
	q.mu.timer.Reset(d)
}

// fire makes due keys dirty in batches, so that workers and producers get the lock in between.
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
		if q.observer != nil {
			q.observeAdded(added)
		}
	}
}
