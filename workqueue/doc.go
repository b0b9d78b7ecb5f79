// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package workqueue holds the keys of work to be done: each key once, each with one worker at most, some of them later.
//
//	                     AddAfter, AddRateLimited
//	                                │
//	                                ▼
//	                     ┌───── delayed ─────┐  a heap of deadlines, one timer
//	                     │        due        │
//	      Add            ▼                   ▼
//	───────────────▶  ready  ◀────────── held, dirty
//	                     │   Done             ▲
//	          Get, Keys  │                    │ Add
//	                     ▼                    │
//	                   held ──────────────────┘
//	                     │ Done
//	                     ▼
//	                 forgotten, unless failures are counted or a deadline waits
//
// A key is dirty when there is work for it, and held while a worker does that work. A deadline is a state of its own: a key
// can be ready or held and have one as well, and an Add does not take it away. [Queue.Withdraw] does.
//
// # Promises
//
//   - W1: a key is in the ready order exactly when it is dirty and not held, and once.
//   - W2: one worker at most holds a key.
//   - W3: a key added while held is handed out again after Done.
//   - W4: no wake-up is lost: while a key is ready no worker stays parked, unless another is awake and about to look.
//   - W5: after ShutDown nothing new is taken and ready keys are still handed out, with them keys that were added while held;
//     ShutDownWithDrain returns when every key that was ready or held has been done.
//   - W6: AddAfter never fires early; of two deadlines for a key the earlier wins.
//   - W7: a key's backoff grows per failure, and Forget resets it.
//   - W9: no goroutine stays, and memory returns after a burst.
//
// W8 (bounded overtaking between priorities) belongs to priorities, which the queue does not have: ready keys are handed out
// in the order in which they became ready.
//
// # Memory
//
// What the queue knows of a key is one entry, numbered by 32 bits. Entries lie in slabs; the index is an open-addressing
// table of entry numbers; ready and held keys are linked through their entries; the heap holds a deadline and a number.
// So a queue is limited to four billion keys, and a key costs its own size and about 40 bytes, 60 with the index, 80 with a deadline.
//
// A key that is not equal to itself (a NaN, or a struct that holds one) cannot be found again. Each Add of such a key is a key
// of its own, it is handed out without being held, and its Done has no effect.
//
// # Concurrency
//
// Every method may be called from any goroutine. One lock guards the state; limiters and the Observer are called outside it.
// The queue has no goroutine: a timer's callback moves keys that are due, and ends.
//
// # Testing
//
// Queues are made for [testing/synctest]: a worker that waits in Get is durably blocked, and deadlines follow the bubble's time.
package workqueue
