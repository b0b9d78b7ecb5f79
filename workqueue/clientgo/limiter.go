// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"time"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// LimitedQueue is a queue of ours whose backoff is that of a client-go rate limiter, which counts the failures itself. Make it
// with [NewLimitedQueue]. Safe for concurrent use.
type LimitedQueue[K comparable] struct {
	*workqueue.Queue[K]
	limiter clientgo.TypedRateLimiter[K]
}

var _ clientgo.TypedRateLimitingInterface[string] = (*LimitedQueue[string])(nil)

// NewLimitedQueue makes a queue of opts, whose RateLimiter it leaves alone. A nil limiter is client-go's default.
func NewLimitedQueue[K comparable](limiter clientgo.TypedRateLimiter[K], opts workqueue.Options) *LimitedQueue[K] {
	if limiter == nil {
		limiter = clientgo.DefaultTypedControllerRateLimiter[K]()
	}
	return &LimitedQueue[K]{Queue: workqueue.New[K](opts), limiter: limiter}
}

// AddRateLimited makes key ready after the wait that the limiter asks for.
func (q *LimitedQueue[K]) AddRateLimited(key K) { q.AddAfter(key, q.limiter.When(key)) }

// AddWith is as that of the queue. With RateLimited the limiter is asked for the wait.
func (q *LimitedQueue[K]) AddWith(key K, opts workqueue.AddOptions) {
	if opts.RateLimited {
		opts.RateLimited = false
		opts.After = shorter(q.limiter.When(key), opts.After)
	}
	q.Queue.AddWith(key, opts)
}

// shorter is wait, or most if that is above 0 and shorter.
func shorter(wait, most time.Duration) time.Duration {
	if most > 0 {
		return min(wait, most)
	}
	return wait
}

// Forget has the limiter forget key. Its deadline, if one waits, stays.
func (q *LimitedQueue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues is how many failures of key the limiter counts.
func (q *LimitedQueue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }
