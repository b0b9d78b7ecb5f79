// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile calls your Reconcile function for objects that change, and requeues
// keys according to its results.
//
//	source ──K──▶ workqueue ──K──▶ worker ──▶ your Reconcile(ctx, object or key)
//	               ▲    ▲                             │ Result, error
//	               │    │                             ▼
//	               │    └── now, after, with backoff ─ settle
//	               └─────── when the cache has passed a conflict
//
//	source.go of package source   adds keys               1 goroutine per source
//	queue.go                      the interface of a queue
//	priority.go                   how a key is added
//	object.go                     For: a key's object     in the worker
//	controller.go                 sources, start and end  1 goroutine
//	worker.go                     the worker pool         1 goroutine per worker
//	run.go                        its context and logger  in the worker
//	settle.go                     requeues keys           in the worker
//	deadline.go                   deadlines, draining     1 goroutine
//	trace.go                      spans                   in the source, in the worker
//
// For makes the controller of a kind, whose function gets the object:
//
//	c := reconcile.For(websites, r.reconcile, reconcile.Options{})
//	c.Watch(source.Owned(deployments, websites))
//	return mgr.Add(c)
//
// New makes a controller for keys of any type.
//
// # Promises
//
//	R1  each event leads to a reconcile that begins after the store shows it
//	R2  workers start when all sources that were added to Watch by then have synced,
//	    except those wrapped in source.Optional
//	R3  a panic is an error of that reconcile, counted and logged with its stack; so is
//	    a reconcile that ends its goroutine, and another worker replaces it
//	R4  own writes are visible to the next reconcile: the client shows them to the
//	    informers before the write returns
//	R5  a reconcile that overruns its soft deadline is reported, once, with its
//	    stack; the hard deadline cancels its context with a *DeadlineError as cause
//	R6  a stale-resourceVersion conflict is quiet, counted, and retried when the
//	    cache has passed the version that failed or the backoff ends, whichever is
//	    first; after ten failures in a row only when the backoff ends; conflicts of
//	    field managers or UIDs are errors
//	R7  a condition's time changes only with its status, and setting a condition to
//	    what it was leaves it unchanged, in its place
//	R8  an owner that the garbage collector would not find, and a second
//	    controller, are errors, and leave the object unchanged
//	R9  a ChildSet deletes only objects with the set's labels that the parent controls
//	    and that are not wanted, at the version that was read, and only after all
//	    wanted ones have been applied; it takes over no object of another controller
//	R10 a ChildSet deletes all children only if PruneAll asks for it explicitly
//	R11 a repeated failure is logged in full once, then at a falling rate for each
//	    key and message, each line with the number of lines omitted before it
//
// Func explains the results of Reconcile. An error wins over a Result. The backoff grows
// with each Retry, error and conflict of a key. It is reset by Done, After and Terminal,
// and by an event that changes the desired state of the key's object. It never delays an
// event: Add makes the key ready at once.
//
// # Names of children
//
// A parent's name may have 253 characters, a Service's 63, and users choose the names of
// parents. ChildName, ChildDNSLabel and LabelValue always return valid names and label
// values, unchanged if possible, and different ones for different parents and parts. Two
// parents with children of the same name would overwrite each other for ever.
//
// A ChildSet applies the wanted children and prunes the rest (childset.go);
// SetControllerReference makes a parent own a child (owner.go). Conditions maintains the
// conditions of a status (condition.go).
//
// # Start and end
//
// New starts nothing. Run starts the sources, waits for them, and starts the workers.
// When its context ends, sources and queue stop, no worker takes another key, and
// reconciles in flight may finish: their contexts continue until Options.DrainTimeout has
// passed. Run returns when everything has ended; it waits for a reconcile that ignores
// its context, and logs its name. A source that returns an error or panics ends the
// controller with that error.
//
// # Logging
//
// The context of a reconcile has a logr.Logger with controller, key and reconcileID.
// Level 0 has what needs attention: errors, panics, overruns. Conflicts and waits are at
// V(1). The logger is created on demand and costs nothing otherwise.
//
// # Tracing
//
// With a TracerProvider, in Options or of the manager, each reconcile is a span, which
// its context and its logger carry. An event that adds a key begins a trace: its span has
// two children, the time in the queue and the reconcile. If several events lead to one
// reconcile, it belongs to the trace of the first and links to the others, at most 16;
// flyball.events counts them. A run without an event, after a time or with backoff,
// begins its own trace, and links to the run that requested it. Without a provider this
// costs nothing.
//
// # Concurrency
//
// At most one worker has a key. Every method is safe for concurrent use, and only Run
// blocks.
//
// # Testing
//
// For and New take a function: call it. A Controller works in a [testing/synctest]
// bubble, where deadlines and backoff take no real time. The decision about requeueing is
// a pure function, tested with a table.
package reconcile
