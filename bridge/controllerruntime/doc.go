// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package bridge runs an operator that is written for controller-runtime on flyball's informers.
//
//	mgr, err := ctrl.NewManager(cfg, bridge.Options(ctrl.Options{Scheme: scheme})) // the one line
//
//	your reconciler ──▶ mgr.GetClient() ── reads ──▶ NewCache ──▶ informer.SharedInformerFactory ──▶ API server
//	                          │                         ▲
//	                          └── writes ──▶ transport ─┘ shows each answer to the cache
//	                                            ▲
//	            controller-runtime's election ── Fence refuses writes without the lease
//
// It is a module of its own, for controller-runtime 0.24 and 0.25. DIFFERENCES.md lists what differs from controller-runtime.
//
// # Promises
//
//   - A read of the cache shows each write that a client of NewClient has completed: create, update, patch, apply,
//     delete, delete-all-of and subresources, in the typed, the unstructured and the metadata form.
//   - No read waits for a write, and no read is older than an earlier one.
//   - An object that cannot be decoded affects only itself: a read of it returns an error, lists omit it.
//   - Every option of cache.Options has controller-runtime's meaning, except for those that DIFFERENCES.md names.
//   - A queue of NewQueue has controller-runtime's rate limiter and metrics, and no key of it starves: W8 of workqueue
//     bounds the keys that pass one of low priority.
//   - With Fence, no write is sent outside the term of a renewal of the leader's lease.
//   - With AddHealthz, a manager is ready once its informers are synced, and not alive while one of them hangs.
//   - The cached objects stay within the memory limit of CacheOptions: above it they are packed, and nothing that fits then
//     is refused.
//   - A cached read that starts an informer is logged once, with the line of the caller, and CacheOptions.ReadLimit
//     refuses it if the objects would take more.
//   - G17 With AddConsole, the runs of keys of NewQueue are recorded as those of flyball's controllers: causes, times,
//     outcomes, requests. No worker waits for the console, and only this machine is answered unless Remote says otherwise.
//   - G18 With Sharded, no request is reconciled by two replicas at once, each is reconciled after its
//     shard has moved, and no Get misses an object that another replica has. A reconcile that goes on
//     after the end of its context cannot write in it.
//   - With ClientOptions.OmitNoOps, only writes that change nothing in the cached object are omitted.
//
// # Concurrency
//
// All of it is safe for concurrent use. Nothing starts before the Start of the cache, which the manager calls, except for a
// timer in each queue that updates two gauges until the queue has been shut down.
//
// # Testing
//
// The tests use a simulated server. controller-runtime's own suite of its cache runs on NewCache in
// hack/guests/controllerruntime, on a simulated and on a real server.
package bridge
