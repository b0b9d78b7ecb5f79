// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package queues connects [workqueue.Queue] and client-go's workqueues. It publishes the metrics of our queues to a
// client-go workqueue.MetricsProvider, and makes a client-go queue usable by our controllers.
//
//	q := workqueue.New(workqueue.Options[K]{Name: name, Observer: metrics})
//
//	Queue ──Observer──▶ Metrics ──▶ depth, adds, retries, latency, work duration   as they happen
//	Queue ◀───Stats──── Metrics.Run ──▶ unfinished work, longest running            twice a second
//
//	client-go's TypedRateLimitingInterface ──NewQueue──▶ reconcile.Options.Queue
//
//	client-go's TypedRateLimiter ──NewLimitedQueue──▶ a Queue with its backoff
//
// A [workqueue.Queue] needs no adapter where client-go's interfaces are required: it has their methods.
//
// # Promises
//
//   - Every change that the queue counts reaches the provider's metric once; depth ends at the number of dirty keys.
//   - Run returns when its context ends, and starts no goroutine.
//   - G8: a controller on a client-go queue runs each added key, with at most one worker at a time, and retries it with that
//     queue's backoff when it fails.
//   - G14: in a [LimitedQueue] the client-go rate limiter alone determines each key's wait and counts its failures.
//
// # Concurrency
//
// Observations come from any goroutine that uses the queue, so the provider's metrics must be safe for concurrent use, as
// Prometheus's are. Two observations may arrive out of order: a depth can be off by those in flight.
//
// # Testing
//
// Run follows the time of a [testing/synctest] bubble.
package queues
