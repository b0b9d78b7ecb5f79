// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"iter"
	"sync/atomic"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// Queue makes a client-go queue usable by our controllers. Make it with [NewQueue]. Safe for concurrent use; only Keys, Get
// and ShutDownWithDrain block.
//
// It is limited to what client-go's queue does. A wait cannot be withdrawn, so a key with an event before the end of its wait
// runs once more when that ends. Stats has only the ready and the held keys: for more, give client-go's queue a
// MetricsProvider. It reports nothing about single keys. Order and backoff are client-go's: keys of a first list are mixed
// with live ones, Result.Priority is ignored, and a controller's Options.PrioritizeBy and FairBy are misuse.
type Queue[K comparable] struct {
	clientgo.TypedRateLimitingInterface[K]
	name string
	held atomic.Int64
}

// NewQueue wraps q, which must not be nil. The name is for metrics.
func NewQueue[K comparable](name string, q clientgo.TypedRateLimitingInterface[K]) *Queue[K] {
	if q == nil {
		return nil // the caller of the result reports it
	}
	return &Queue[K]{TypedRateLimitingInterface: q, name: name}
}

// Withdraw returns false: a wait of a client-go queue cannot be withdrawn.
func (q *Queue[K]) Withdraw(K) bool { return false }

// Keys yields keys until the queue has been shut down and is empty. The body of the loop holds the key: the key is done when
// the body ends, also by break, return or panic.
func (q *Queue[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for {
			key, shutdown := q.Get()
			if shutdown || !q.hold(key, yield) {
				return
			}
		}
	}
}

func (q *Queue[K]) hold(key K, yield func(K) bool) bool {
	q.held.Add(1)
	defer func() {
		q.held.Add(-1)
		q.Done(key)
	}()
	return yield(key)
}

// Stats returns the known numbers: Ready, and as Held the keys that Keys has yielded.
func (q *Queue[K]) Stats() workqueue.Stats {
	ready, held := q.Len(), int(q.held.Load())
	return workqueue.Stats{Name: q.name, Ready: ready, Held: held, Keys: ready + held}
}
