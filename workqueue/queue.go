// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	batch      = 256 // delayed keys made ready, or dropped, per lock
	alarming   = 64  // ready keys that wake a further worker at first
	unarmed    = math.MaxInt64
	spinRounds = 32 // attempts of an idle worker before it parks
)

// Options of a queue. The zero value is suitable for production.
type Options[K comparable] struct {
	Name        string      // for metrics
	RateLimiter RateLimiter // of AddRateLimited; nil: Exponential, 5 ms to 1000 s
	Observer    Observer    // called for each change; nil: none. Stats does not need it.

	// FairBy makes the flows of keys take turns: within a priority, each flow with ready keys has its turn before any has its
	// next, so a flood of keys in one flow does not block another. It returns the flow of a key, such as its namespace, tenant
	// or cluster, always the same for one key; "" is a flow too. Callers that add keys call it outside the queue's lock. It
	// must not block and should not allocate. Up to 65,535 flows are distinguished at a time; keys of further ones count as
	// those of "". Nil: no flows.
	FairBy func(key K) string
}

// Observer is called for each change of a key, outside the queue's lock and on the goroutine that caused the change: calls
// may overlap and arrive out of order. It must not block.
type Observer interface {
	Added()                         // a key became dirty
	Retried()                       // AddAfter or AddRateLimited was called
	HandedOut(waited time.Duration) // a worker got a key that was ready for that long
	Done(worked time.Duration)      // a worker is done with a key that it held for that long
}

// CancelObserver is an Observer that follows the number of ready keys.
type CancelObserver interface {
	Observer
	Canceled() // Cancel removed a key that was ready
}

// Queue holds ready, held and delayed keys. Make it with [New]. All methods are safe for concurrent use; only Get, Keys and
// ShutDownWithDrain block.
type Queue[K comparable] struct {
	name     string
	limiter  RateLimiter
	observer Observer
	seed     maphash.Seed
	base     time.Time
	flow     func(K) string // nil: no flows

	work sync.Cond   // a key is ready, or none will be
	idle sync.Cond   // nothing is ready or held, or a drain was cancelled
	look atomic.Bool // wakes the spinning worker

	mu struct {
		sync.Mutex
		state    state[K]
		timer    *time.Timer
		armed    int64 // when the timer fires; unarmed if it does not
		parked   int   // workers waiting on work
		waking   bool  // one of them was signalled and has not looked yet
		spinning bool  // a worker spins before it parks
		alarm    int   // ready keys that wake a further worker
		drain    bool
	}
}

// New returns a queue. It starts nothing, so an unused queue need not be shut down.
func New[K comparable](opts Options[K]) *Queue[K] {
	q := &Queue[K]{
		name:     opts.Name,
		limiter:  opts.RateLimiter,
		observer: opts.Observer,
		flow:     opts.FairBy,
		seed:     maphash.MakeSeed(),
		base:     time.Now(),
	}
	if q.limiter == nil {
		q.limiter = Exponential{}
	}
	q.work.L, q.idle.L = &q.mu.Mutex, &q.mu.Mutex
	q.mu.armed, q.mu.alarm = unarmed, alarming
	return q
}

func (q *Queue[K]) hash(key K) uint32 { return uint32(maphash.Comparable(q.seed, key) >> 32) }

// now returns the queue's time. It is read outside the lock where possible.
func (q *Queue[K]) now() int64 { return int64(time.Since(q.base)) }

// Add makes key ready with priority 0, unless it is ready already, with at least that priority. A held key becomes ready
// after its Done. A deadline of key stays. After ShutDown Add does nothing.
func (q *Queue[K]) Add(key K) {
	hash, w := q.hash(key), addParams{}
	if q.flow != nil {
		w.flow = q.flowOf(key)
	}
	q.mu.Lock()
	n, added, ready := q.mu.state.add(key, hash, w)
	if q.mu.state.unasked(n) { // so is every key that became ready
		now := q.now()
		q.mu.state.ask(n, now)
		if ready {
			q.mu.state.stamp(n, now)
		}
	}
	if !added {
		q.mu.Unlock()
		return
	}
	q.unlockAndWake()
	if q.observer != nil {
		q.observer.Added()
	}
}

// Get returns the next key, and blocks until one is ready: without priorities and flows the one that has been ready longest.
// The caller holds the key until it calls Done. After ShutDown, when no key is ready and no held key was added again, Get
// returns shutdown true.
func (q *Queue[K]) Get() (key K, shutdown bool) {
	var h hold[K]
	ok := q.next(&h)
	return h.key, !ok
}

// GetWithPriority is Get, and returns the priority that key is handed out with.
func (q *Queue[K]) GetWithPriority() (key K, priority int, shutdown bool) {
	var h hold[K]
	ok := q.next(&h)
	return h.key, int(h.priority), !ok
}

// Done ends the hold of key. A key added while held becomes ready again. Done of a key that is not held does nothing.
func (q *Queue[K]) Done(key K) {
	now := q.now()
	q.mu.Lock()
	n, sure := q.mu.state.recent(key)
	if !sure {
		q.mu.Unlock()
		hash := q.hash(key) // outside the lock: it panics if key is not comparable
		q.mu.Lock()
		n = q.mu.state.find(key, hash)
	}
	if n == 0 || !q.mu.state.at(n).is(held) {
		q.mu.Unlock()
		return
	}
	q.unlockWithDone(n, now)
}

// unlockWithDone ends the hold of entry n, releases the lock and notifies waiters.
func (q *Queue[K]) unlockWithDone(n number, now int64) {
	worked := q.mu.state.done(n, now)
	q.announceEndLocked()
	q.unlockAndWake()
	if q.observer != nil {
		q.observer.Done(time.Duration(worked))
	}
}

// Len returns the number of ready keys.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.backlog()
}

// ShutDown makes the queue ignore new keys and drops deadlines. Keys that are ready, or held and added again, are still
// handed out; then Get returns shutdown. It ends a blocked drain. Further calls have no effect.
func (q *Queue[K]) ShutDown() { q.shutDown(false) }

// ShutDownWithDrain is ShutDown, and blocks until every ready or held key is done. Workers must continue to take keys, or it
// blocks forever; ShutDown ends it.
func (q *Queue[K]) ShutDownWithDrain() { q.shutDown(true) }

func (q *Queue[K]) shutDown(drain bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.timer != nil {
		q.mu.timer.Stop()
	}
	q.mu.state.shut = true
	q.mu.drain = drain
	q.look.Store(true)
	q.work.Broadcast()
	q.idle.Broadcast()
	for q.mu.state.dropDelays(batch) { // workers get the lock in between
		q.mu.Unlock()
		q.mu.Lock()
	}
	for drain && q.mu.drain && !q.mu.state.drained() {
		q.idle.Wait()
	}
}

// ShuttingDown reports whether ShutDown or ShutDownWithDrain has been called.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.state.shut
}
