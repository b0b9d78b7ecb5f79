// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo joins a [workqueue.Queue] and client-go's workqueues: it publishes the numbers of ours to a client-go
// workqueue.MetricsProvider, and lifts a queue of client-go's to what a controller of ours takes keys from.
//
//	q := workqueue.New[K](workqueue.Options{Name: name, Observer: metrics})
//
//	Queue ──Observer──▶ Metrics ──▶ depth, adds, retries, latency, work duration   as they happen
//	Queue ◀───Stats──── Metrics.Run ──▶ unfinished work, longest running            twice a second
//
//	client-go's TypedRateLimitingInterface ──NewQueue──▶ reconcile.Controller.UseQueue
//
//	client-go's TypedRateLimiter ──NewLimitedQueue──▶ a Queue with its backoff
//
// A [workqueue.Queue] needs no adapter to be used where client-go's interfaces are asked for: it has their methods.
//
// # Promises
//
//   - Every change the queue counts reaches the provider's metric once; depth ends at the number of dirty keys.
//   - Run returns when its context ends, and starts no goroutine.
//   - G8: a controller on client-go's queue runs each key that was added, one worker at most at a time, and again with that
//     queue's backoff when it fails.
//   - G14: a [LimitedQueue] has each key wait as its client-go rate limiter says, which alone counts the failures.
//
// # Concurrency
//
// The observations come from whichever goroutine uses the queue, so the provider's metrics must be safe for concurrent use,
// as Prometheus's are. Two observations may arrive in another order than they happened: a depth may be off by those in flight.
//
// # Testing
//
// Run follows the time of a [testing/synctest] bubble.
package clientgo
