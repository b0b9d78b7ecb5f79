// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package workqueue holds the keys of work to be done: each key once, each with one worker at most, some of them later.
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
// A key is dirty when there is work for it, and held while a worker does that work. A deadline is a state of its own: a key
// can be ready or held and have one as well, and an Add does not take it away. [Queue.Withdraw] does.
//
// # Order
//
// Ready keys are handed out in the order in which they became ready. Keys may have a priority ([Queue.AddWith]) and a flow
// ([Queue.FairBy]). Then higher priorities come first, and of one priority the flows take turns; a priority that has been
// passed over eight times comes before higher ones, once. A key that is ready or delayed and is added with a higher
// priority is raised to it, at the end of that priority's line of its flow; with a lower one it stays where it is. A held
// key that is added comes back with the priority asked for then, and what its worker asks for with AddAfter and AddRateLimited comes with
// the priority that it was handed out with. A turn is a hand-out: how long workers hold the keys of a flow is not weighed.
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
//   - W8: whatever the priorities, no ready key is overtaken for ever. Let a key become ready as the p-th ready key of its
//     flow and priority, and until it is handed out let there be at most F flows with ready keys of its priority, and at most L
//     priorities with ready keys. Then at most B = p*F*(8+L) - 1 hand-outs pass before its own, and p*F - 1 while L is 1. Other
//     keys of its flow that come later, and floods of other flows, are not in B. A raise begins anew, and a key can be raised as
//     often as there are higher priorities. Without flows F is 1; without priorities too, B is the number of keys before it.
//   - W9: no goroutine stays, and memory returns after a burst.
//   - W11: a worker that asks for a key moves the keys that are due by itself, with Get and with Keys, with an Observer and
//     without: a machine that has no processor for the timer's callback does not hold them up.
//   - W12: of a million keys of 32 bytes a ready one takes at most 90 bytes of heap, a delayed one at most 106, key included.
//
// # Memory
//
// What the queue knows of a key is one entry, numbered by 32 bits. Entries lie in slabs; the index is an open-addressing
// table of entry numbers; ready and held keys are linked through their entries, and what only a held key needs lies in a slice
// as long as there are held keys; the heap holds a deadline and a number, 12 bytes. So a queue is limited to four billion keys,
// and a key costs its own size and 40 bytes, about 57 with the index, about 70 with a deadline.
// Priorities and flows cost a key nothing; a flow costs its name and about 130 bytes while the queue knows keys of it, which are
// given back when no flow has any.
//
// A key that is not equal to itself (a NaN, or a struct that holds one) cannot be found again. Each Add of such a key is a key
// of its own, it is handed out without being held, and its Done has no effect.
//
// # Concurrency
//
// Every method may be called from any goroutine. One lock guards the state; limiters, the Observer and the function of FairBy are called outside it.
// The queue has no goroutine: workers that ask for a key move keys that are due, and so does a timer's callback, which ends.
//
// # Testing
//
// Queues are made for [testing/synctest]: a worker that waits in Get is durably blocked, and deadlines follow the bubble's time.
package workqueue
