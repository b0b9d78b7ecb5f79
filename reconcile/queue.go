// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Queue is what a Controller needs of its queue. *workqueue.Queue has it, and is
// what New gives a Controller; workqueue/clientgo makes one of client-go's. One that is
// a PriorityQueue is told of priorities too.
type Queue[K comparable] interface {
	// Add makes key ready, once. A key that is held becomes ready after its hold.
	Add(key K)
	// AddAfter is Add when d has passed.
	AddAfter(key K, d time.Duration)
	// AddRateLimited counts a failure and is AddAfter with the backoff's wait.
	AddRateLimited(key K)
	// Forget resets the count of failures.
	Forget(key K)
	// NumRequeues is the count of failures.
	NumRequeues(key K) int
	// Withdraw takes the wait of AddAfter and AddRateLimited away, and reports
	// whether it did. What a queue cannot take away leads to one more run.
	Withdraw(key K) bool
	// Keys yields keys until the queue is shut down; the loop's body is the hold,
	// and no key is held twice. Several goroutines range at the same time.
	Keys() iter.Seq[K]
	// ShutDown ends all Keys and has the queue take nothing more.
	ShutDown()
	// Stats are the queue's numbers, as far as it knows them.
	Stats() workqueue.Stats
}

var _ Queue[string] = (*workqueue.Queue[string])(nil)

// UseQueue has the controller take its keys from q in place of a queue of its own.
// It belongs before Watch and Run. The controller shuts q down at its end, and
// nobody else may. A nil q, a call after Run has begun, and Options.RateLimiter,
// which q does not heed, are remembered: Err and Run return them.
func (c *Controller[K]) UseQueue(q Queue[K]) {
	switch {
	case isNil(q):
		c.misused(errors.New("use queue: the queue is nil; give one, such as clientgo.NewQueue of package workqueue/clientgo makes"))
	case c.limited:
		c.misused(errors.New("use queue: Options.RateLimiter is for the controller's own queue; leave it out, and set the other queue's"))
	case !c.takeQueue(q):
		c.misused(errors.New("use queue: the controller has begun to run with its own; use it before Run"))
	}
}

func (c *Controller[K]) takeQueue(q Queue[K]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.began == 0 {
		c.queue = q
	}
	return c.mu.began == 0
}

// queueStats are asked for before and during the run.
func (c *Controller[K]) queueStats() workqueue.Stats {
	c.mu.Lock()
	q := c.queue
	c.mu.Unlock()
	return q.Stats()
}
