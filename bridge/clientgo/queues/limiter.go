// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"time"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// LimitedQueue is our queue with the backoff of a client-go rate limiter, which counts the failures. Make it with
// [NewLimitedQueue]. Safe for concurrent use.
type LimitedQueue[K comparable] struct {
	*workqueue.Queue[K]
	limiter clientgo.TypedRateLimiter[K]
}

var _ clientgo.TypedRateLimitingInterface[string] = (*LimitedQueue[string])(nil)

// NewLimitedQueue returns a queue with opts, except for the RateLimiter. A nil limiter is client-go's default.
func NewLimitedQueue[K comparable](limiter clientgo.TypedRateLimiter[K], opts workqueue.Options[K]) *LimitedQueue[K] {
	if limiter == nil {
		limiter = clientgo.DefaultTypedControllerRateLimiter[K]()
	}
	return &LimitedQueue[K]{Queue: workqueue.New(opts), limiter: limiter}
}

// AddRateLimited makes key ready after the limiter's delay.
func (q *LimitedQueue[K]) AddRateLimited(key K) { q.AddAfter(key, q.limiter.When(key)) }

// AddWith is Queue.AddWith. With RateLimited it uses the limiter's delay.
func (q *LimitedQueue[K]) AddWith(key K, opts workqueue.AddOptions) {
	if opts.RateLimited {
		opts.RateLimited = false
		opts.After = shorter(q.limiter.When(key), opts.After)
	}
	q.Queue.AddWith(key, opts)
}

// shorter returns wait, limited to most if that is above 0.
func shorter(wait, most time.Duration) time.Duration {
	if most > 0 {
		return min(wait, most)
	}
	return wait
}

// Forget makes the limiter forget key. A deadline stays.
func (q *LimitedQueue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues returns the failures of key that the limiter counts.
func (q *LimitedQueue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }
