// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package workqueue holds keys of work: each key once, each with at most one worker, some of them delayed.
//
//	                     AddAfter, AddRateLimited
//	                                │
//	                                ▼
//	                     ┌───── delayed ─────┐  a heap of deadlines, one timer
//	                     │        due        │
//	  Add, AddWith       ▼                   ▼
//	───────────────▶  ready  ◀────────── held, dirty
//	                     │   Done             ▲
//	          Get, Keys  │                    │ Add
//	                     ▼                    │
//	                   held ──────────────────┘
//	                     │ Done
//	                     ▼
//	                 forgotten, unless failures are counted or a deadline waits
//
// A key is dirty when there is work for it, and held while a worker does that work. A deadline is independent of both: a key
// that is ready or held can have one, and Add does not remove it. [Queue.Withdraw] does, and [Queue.Cancel] removes all that
// waits.
//
// # Order
//
// Ready keys are handed out in the order in which they became ready. Keys may have a priority ([Queue.AddWith]) and a flow
// ([Options.FairBy]). Higher priorities go first, and the flows of a priority take turns, one hand-out each. A
// priority that has been passed over eight times goes before higher ones, once. Adding a ready or delayed key with a higher
// priority moves it to that priority, at the end of its flow's line; a lower priority changes nothing. A held key returns with
// the priority of an Add, or after AddAfter and AddRateLimited with the one that it was handed out with.
//
// # Promises
//
//   - W1: a key is in the ready order exactly when it is dirty and not held, and once.
//   - W2: at most one worker holds a key.
//   - W3: a key added while held is handed out again after Done.
//   - W4: no wake-up is lost: while a key is ready no worker stays parked, unless another is awake and about to look.
//   - W5: after ShutDown the queue accepts nothing new and still hands out ready keys, and keys that were added while held;
//     ShutDownWithDrain returns when every key that was ready or held is done.
//   - W6: AddAfter never fires early; of two deadlines for a key the earlier wins.
//   - W7: a key's backoff grows with each failure, and Forget resets it.
//   - W8: no ready key starves. The p-th ready key of its flow and priority is handed out after at most p*F*(8+L) - 1
//     others, where F flows of its priority and L priorities have ready keys meanwhile; after p*F - 1 if L is 1. Later
//     keys of its flow and floods of other flows do not change that bound. Raising the key starts the count again, at most once
//     per higher priority. Without flows F is 1; without priorities too, the bound is the number of keys before it.
//   - W9: no goroutine stays, and memory is released after a burst.
//   - W11: a worker that asks for a key moves due keys itself, with Get and with Keys, with an Observer and without, so
//     that a late timer does not delay them.
//   - W12: of a million keys of 32 bytes a ready one takes at most 90 bytes of heap, a delayed one at most 106, key included.
//   - W13: Cancel removes a key that is ready or delayed, whatever its flow and priority, and never one that is held.
//
// # Memory
//
// A key costs its own size and 40 bytes, about 57 with the index, about 70 with a deadline: entries are in slabs and numbered by
// 32 bits, so a queue is limited to four billion keys. Priorities cost nothing. A flow costs its name and about 130 bytes
// while the queue has keys of it.
//
// A key that is not equal to itself (a NaN, or a struct with one) cannot be found again. Each Add of such a key counts as a
// new key, it is handed out without being held, and its Done has no effect.
//
// # Concurrency
//
// Every method may be called from any goroutine. One lock guards the state; limiters, the Observer and the function of FairBy
// are called without it. The queue has no goroutine: workers and a timer's callback move due keys.
//
// # Testing
//
// Queues work in a [testing/synctest] bubble: a worker that waits in Get is durably blocked, and deadlines follow the bubble's time.
package workqueue
