// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Queue is the interface of a Controller's queue. *workqueue.Queue implements it and is
// the default; bridge/clientgo/queues adapts client-go's. A PriorityQueue also gets
// priorities.
type Queue[K comparable] interface {
	// Add makes key ready, once. A held key becomes ready after its hold.
	Add(key K)
	// AddAfter is Add after d has passed.
	AddAfter(key K, d time.Duration)
	// AddRateLimited counts a failure and is AddAfter with the delay of the backoff.
	AddRateLimited(key K)
	// Forget resets the count of failures.
	Forget(key K)
	// NumRequeues returns the count of failures.
	NumRequeues(key K) int
	// Withdraw cancels the delay of AddAfter and AddRateLimited, and reports whether it
	// did. A queue that cannot cancel it causes one more run.
	Withdraw(key K) bool
	// Keys yields keys until the queue is shut down. A key is held during the loop's
	// body, and no key is held twice. Several goroutines can range at the same time.
	Keys() iter.Seq[K]
	// ShutDown ends all Keys and makes the queue drop later additions.
	ShutDown()
	// Stats returns the numbers that the queue has.
	Stats() workqueue.Stats
}

var _ Queue[string] = (*workqueue.Queue[string])(nil)

// chooseQueue creates the controller's queue, or uses the one in opts.
func (c *Controller[K]) chooseQueue(opts KeyedOptions[K]) {
	own := workqueue.Options[K]{Name: c.name, RateLimiter: keyed(opts.RateLimiter, c.random)}
	if opts.FairBy != nil {
		own.FairBy = func(key K) (flow string) {
			defer c.caught("the function that names flows panicked; the key is of none", key)
			return opts.FairBy(key)
		}
	}
	if opts.Queue == nil || isNil(opts.Queue) {
		queue := workqueue.New(own)
		c.queue, c.ordered = queue, queue
	} else {
		c.queue = opts.Queue
		c.ordered, _ = opts.Queue.(PriorityQueue[K])
	}
	if opts.Queue == nil {
		return
	}
	if isNil(opts.Queue) {
		c.misused(errors.New("Options.Queue is a nil pointer; give a queue, such as clientgo.NewQueue of package bridge/clientgo/queues makes, or leave it out"))
	}
	if opts.RateLimiter != nil {
		c.misused(errors.New("Options.RateLimiter is for the controller's own queue; leave it out, and set the rate limiter of Options.Queue"))
	}
	if opts.FairBy != nil {
		c.misused(errors.New("Options.FairBy is for the controller's own queue; leave it out, and have Options.Queue order the flows, as workqueue.Options.FairBy does"))
	}
	if opts.PrioritizeBy != nil && c.ordered == nil {
		c.misused(errors.New("Options.PrioritizeBy needs a queue that knows priorities; leave it out, or leave Options.Queue out"))
	}
}
