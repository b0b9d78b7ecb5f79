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
// that is ready or held can have one, and Add does not remove it. [Queue.Withdraw] does.
//
// # Order
//
// Ready keys are handed out in the order in which they became ready. Keys may have a priority ([Queue.AddWith]) and a flow
// ([Options.FairBy]). Then higher priorities go first, and the flows of a priority take turns; a priority that has been passed
// over eight times goes before higher ones, once. Adding a ready or delayed key with a higher priority raises it to that
// priority, at the end of its flow's line; a lower priority changes nothing. A held key that is added returns with the
// priority of that Add, and with the priority that it was handed out with after AddAfter and AddRateLimited. A turn is one
// hand-out: how long workers hold the keys of a flow does not count.
//
// # Promises
//
//   - W1: a key is in the ready order exactly when it is dirty and not held, and once.
//   - W2: at most one worker holds a key.
//   - W3: a key added while held is handed out again after Done.
//   - W4: no wake-up is lost: while a key is ready no worker stays parked, unless another is awake and about to look.
//   - W5: after ShutDown the queue takes nothing new and still hands out ready keys, and keys that were added while held;
//     ShutDownWithDrain returns when every key that was ready or held is done.
//   - W6: AddAfter never fires early; of two deadlines for a key the earlier wins.
//   - W7: a key's backoff grows with each failure, and Forget resets it.
//   - W8: whatever the priorities, no ready key is overtaken for ever. Let a key become ready as the p-th ready key of its
//     flow and priority, and until it is handed out let there be at most F flows with ready keys of its priority, and at most L
//     priorities with ready keys. Then at most B = p*F*(8+L) - 1 hand-outs pass before its own, and p*F - 1 while L is 1. Later
//     keys of its flow, and floods of other flows, do not enter B. A raise starts the count again, and a key can be raised as
//     often as there are higher priorities. Without flows F is 1; without priorities too, B is the number of keys before it.
//   - W9: no goroutine stays, and memory is released after a burst.
//   - W11: a worker that asks for a key moves due keys itself, with Get and with Keys, with an Observer and without: a
//     machine that has no processor for the timer's callback does not delay them.
//   - W12: of a million keys of 32 bytes a ready one takes at most 90 bytes of heap, a delayed one at most 106, key included.
//
// # Memory
//
// The queue keeps one entry per key, numbered by 32 bits. Entries lie in slabs; the index is an open-addressing
// table of entry numbers; ready and held keys are linked through their entries; what only a held key needs lies in a slice
// as long as there are held keys; the heap holds a deadline and a number, 12 bytes. A queue is therefore limited to four
// billion keys, and a key costs its own size and 40 bytes, about 57 with the index, about 70 with a deadline.
// Priorities and flows cost a key nothing. A flow costs its name and about 130 bytes while the queue has keys of it; the memory
// is released when no flow has any.
//
// A key that is not equal to itself (a NaN, or a struct with one) cannot be found again. Each Add of such a key counts as a
// new key, it is handed out without being held, and its Done has no effect.
//
// # Concurrency
//
// Every method may be called from any goroutine. One lock guards the state; limiters, the Observer and the function of FairBy
// are called without it. The queue has no goroutine: workers that ask for a key move due keys, and so does a timer's
// callback, which returns.
//
// # Testing
//
// Queues work in a [testing/synctest] bubble: a worker that waits in Get is durably blocked, and deadlines follow the bubble's time.
package workqueue
