// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile calls your Reconcile function for objects that change, and requeues
// keys according to its results.
//
//	c := reconcile.For(websites, r.reconcile, reconcile.Options{})
//	c.Watch(source.Owned(deployments, websites))
//	return mgr.Add(c)
//
//	source ──K──▶ workqueue ──K──▶ worker ──▶ your Reconcile(ctx, object or key)
//	               ▲    ▲                             ▼ Result, error
//	               │    └── now, after, with backoff ─ finish
//	               └─────── when the cache has passed a conflict
//
// For makes the controller of a kind, New one for keys of any type; Func explains results.
// docs/writing.md is about ChildSet, ChildName and Conditions.
//
// # Promises
//
//	R1  each event leads to a reconcile that begins after the store shows it, but for R15 and R16
//	R2  workers start when all sources added to Watch by then have synced, but for source.Optional
//	R3  a panic, or the end of its goroutine, is an error of a reconcile, counted, logged with its stack
//	R4  own writes are visible to the next reconcile, before the write returns
//	R5  a reconcile past its soft deadline is reported once; the hard one cancels its context (*DeadlineError)
//	R6  a stale-resourceVersion conflict is quiet, counted, and retried when the cache has
//	    passed that version or the backoff ends; after ten failures in a row only when the
//	    backoff ends; conflicts of field managers or UIDs are errors
//	R7  a condition's time changes only with its status; setting it to what it was changes nothing
//	R8  an owner that the garbage collector would not find, or a second controller, is an error
//	R9  a ChildSet deletes only what it has made, with its labels, controlled by the parent and not wanted,
//	    at the version read, after it has applied all wanted; it takes over no object of another controller
//	R10 a ChildSet deletes all children only if PruneAll asks for it explicitly
//	R11 a repeated failure is logged in full once, then at a falling rate, with the number of lines omitted
//	R12 a *kube.NotSettledError is a conflict: it runs again when the effect of the write is known
//	R14 R4 holds for the writes of any client made from the manager's configuration
//	R15 the event of an own write wakes its key like any other event. With Options.OmitOwnEvents an
//	    event wakes no key whose own reconciles have made all that it reports, by writes that
//	    named the version before or created the object; a foreign write always wakes
//	R16 a controller of For is not woken for a key without an object, unless it retries
//	R17 a child of Once is created if the server has none, and the set never rewrites its content
//	R18 an object of For that is gone when it is written is not an error
//	R25 Recreate deletes only what cannot be updated and could be created, once per content
//	R26 a cleanup of Finalize may write its own object; a changed spec runs it again
//	R28 CausesOf, logger and span name what was added for the key since its last run began
//	R29 Runs has each key's last runs in bounded memory: causes, result, requests, fields changed
//	R30 Findings names keys that wake themselves, fight, write without effect, are stuck or starve
//	R31 a paused key does not run; what wakes it is kept, and it runs once when it is resumed
//	R32 of replicas that share objects, the one that holds a key's shard reconciles it
//
// # Concurrency
//
// New starts nothing. Only Run blocks. All methods are safe for concurrent use.
//
// # Testing
//
// Call the function. A Controller works in a testing/synctest bubble, in its time.
package reconcile
