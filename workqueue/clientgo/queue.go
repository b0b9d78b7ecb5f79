// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"iter"
	"sync/atomic"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// Queue is a client-go queue from which a controller of ours can take its keys. Make it with [NewQueue]. Safe for concurrent
// use; only Keys, Get and ShutDownWithDrain block.
//
// It does what client-go's does, which is less. A wait cannot be taken back, so a key whose event came before the end of its
// wait runs once more when that ends. Of its numbers it knows the ready and the held keys alone: for the rest give
// client-go's queue a MetricsProvider. It does not say what it knows of a key. Its order and backoff are its own: keys of a first
// list stand among live ones as they came, Result.Priority is not heeded, and a controller's PrioritizeBy and FairBy are misuse.
type Queue[K comparable] struct {
	clientgo.TypedRateLimitingInterface[K]
	name string
	held atomic.Int64
}

// NewQueue lifts q, which must not be nil. The name is for metrics.
func NewQueue[K comparable](name string, q clientgo.TypedRateLimitingInterface[K]) *Queue[K] {
	if q == nil {
		return nil // who is given it says what to do
	}
	return &Queue[K]{TypedRateLimitingInterface: q, name: name}
}

// Withdraw reports false: a wait of client-go's queue cannot be taken away.
func (q *Queue[K]) Withdraw(K) bool { return false }

// Keys yields keys until the queue has been shut down and nothing is left. The body of the loop is the hold: the key is done
// when the body ends, by break, return or panic too.
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

// Stats are the numbers that can be known: Ready, and of the keys that Keys has yielded, Held.
func (q *Queue[K]) Stats() workqueue.Stats {
	ready, held := q.Len(), int(q.held.Load())
	return workqueue.Stats{Name: q.name, Ready: ready, Held: held, Keys: ready + held}
}
