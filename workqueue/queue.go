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
	batch      = 256 // delayed keys made ready, or dropped, per hold of the lock
	alarming   = 64  // ready keys, at first, that call a worker although one is on its way
	unarmed    = math.MaxInt64
	spinRounds = 32 // looks of a worker without work before it parks
)

// Options of a queue. The zero value is fit for production.
type Options struct {
	Name        string      // for metrics
	RateLimiter RateLimiter // of AddRateLimited; nil: Exponential, 5 ms to 1000 s
	Observer    Observer    // told of each change as it happens; nil: none. Stats counts without it.
}

// Observer is told what happens to keys, outside the queue's lock and on the goroutine that caused it: two calls may overlap,
// and arrive in another order than they happened. It must not block.
type Observer interface {
	Added()                         // a key became dirty
	Retried()                       // AddAfter or AddRateLimited was called
	HandedOut(waited time.Duration) // a key was given to a worker, after so long in the ready order
	Done(worked time.Duration)      // a worker has done a key, after so long in its hands
}

// Queue holds keys to be worked on: ready ones in order, held ones, and delayed ones. Make it with [New]. All methods are safe
// for concurrent use, and only Get, Keys and ShutDownWithDrain block.
type Queue[K comparable] struct {
	name     string
	limiter  RateLimiter
	observer Observer
	seed     maphash.Seed
	base     time.Time
	flow     atomic.Pointer[func(K) string] // nil: keys have no flows

	work sync.Cond   // a key is ready, or nothing will be any more
	idle sync.Cond   // nothing is ready or held, or a drain has been called off
	look atomic.Bool // work, for the worker that spins

	mu struct {
		sync.Mutex
		state    state[K]
		timer    *time.Timer
		armed    int64 // when the timer fires; unarmed if it does not
		parked   int   // workers that wait for the condition
		waking   bool  // one of them has been signalled and has not looked yet
		spinning bool  // one worker looks again and again before it parks
		alarm    int   // ready keys that call a worker although one is on its way
		drain    bool
	}
}

// New returns a queue. It starts nothing, so a queue that is no longer used need not be shut down.
func New[K comparable](opts Options) *Queue[K] {
	q := &Queue[K]{
		name:     opts.Name,
		limiter:  opts.RateLimiter,
		observer: opts.Observer,
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

// now is the queue's clock. It is read outside the lock where that is possible.
func (q *Queue[K]) now() int64 { return int64(time.Since(q.base)) }

// Add makes key ready with priority 0, unless it is so already; then its priority is 0 at least. A key that is held becomes
// ready after its Done. A deadline that waits for key stays. After ShutDown Add does nothing.
func (q *Queue[K]) Add(key K) {
	hash, w := q.hash(key), wish{}
	if q.flow.Load() != nil {
		w.flow = q.flowOf(key)
	}
	q.mu.Lock()
	n, added, ready := q.mu.state.add(key, hash, w)
	if q.mu.state.unasked(n) { // so is all that has become ready
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

// Get hands out the key whose turn it is, and waits if none is ready: without priorities and flows the one that has been ready
// longest. The caller holds the key until it calls Done with it. After ShutDown, when nothing is ready and nothing held has been added again, Get returns shutdown true.
func (q *Queue[K]) Get() (key K, shutdown bool) {
	var h hold[K]
	ok := q.next(&h)
	return h.key, !ok
}

// Done ends the hold of key. If the key was added while held it is ready again. Done of a key that is not held does nothing.
func (q *Queue[K]) Done(key K) {
	now := q.now()
	q.mu.Lock()
	n, sure := q.mu.state.recent(key)
	if !sure {
		q.mu.Unlock()
		hash := q.hash(key) // outside the lock: it panics if key holds what cannot be compared
		q.mu.Lock()
		n = q.mu.state.find(key, hash)
	}
	if n == 0 || !q.mu.state.at(n).is(held) {
		q.mu.Unlock()
		return
	}
	q.unlockWithDone(n, now)
}

// unlockWithDone ends the hold of entry n, lets the lock go and tells those who wait for that.
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

// ShutDown makes the queue refuse all that is new and drops waiting deadlines. Keys that are ready, or held and added again,
// are still handed out; then Get returns shutdown. A drain that waits returns. Further calls do nothing more.
func (q *Queue[K]) ShutDown() { q.shutDown(false) }

// ShutDownWithDrain is ShutDown, and waits until every key that was ready or held has been done. Workers must go on taking
// keys, else it waits for ever; ShutDown ends the wait.
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
