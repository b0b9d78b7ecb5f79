// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile runs your Reconcile function for the objects that change, and
// decides what follows from what it returns.
//
//	source ──K──▶ workqueue ──K──▶ worker ──▶ your Reconcile(ctx, object or key)
//	               ▲    ▲                             │ Result, error
//	               │    │                             ▼
//	               │    └── now, after, with backoff ─ settle
//	               └─────── when the cache has passed a conflict
//
//	source.go of package source   names keys              1 goroutine per source
//	queue.go                      what is asked of a queue
//	priority.go                   how a key is added
//	object.go                     For: a key's object     in the worker
//	controller.go                 sources, start and end  1 goroutine
//	worker.go                     the worker pool         1 goroutine per worker
//	run.go                        its context and logger  in the worker
//	settle.go                     what follows            in the worker
//	deadline.go                   deadlines, draining     1 goroutine
//	trace.go                      spans                   in who names a key, in the worker
//
// For makes the controller of a kind, whose function gets the object:
//
//	c := reconcile.For(websites, r.reconcile, reconcile.Options{})
//	c.Watch(source.Owned(deployments, websites))
//	return mgr.Add(c)
//
// New makes one for keys of any type.
//
// # Promises
//
//	R1  each event leads to a reconcile that begins after the store shows it
//	R2  workers start when all required sources are synced: those that Watch was
//	    told of by then, save for source.Optional
//	R3  a panic is an error of that reconcile, counted and logged with its stack;
//	    so is a goroutine that the reconcile ends, and a worker takes its place
//	R4  own writes are visible to the next reconcile: the client shows them to the
//	    informers before the write returns
//	R5  a reconcile that overruns its soft deadline is reported, once, with its
//	    stack; the hard deadline cancels its context with a *DeadlineError as cause
//	R6  a stale-resourceVersion conflict is quiet, counted, and retried when the
//	    cache has passed the version that failed or the backoff ends, whichever is
//	    first; after ten failures in a row only when the backoff ends; conflicts of
//	    field managers or UIDs are errors
//	R7  a condition's time moves with its status alone, and a condition that says
//	    the same stays what it is, in its place
//	R8  an owner that the garbage collector would not find, and a second
//	    controller, are errors, and the object is as it was
//	R9  a ChildSet deletes only what the parent controls at the version that was
//	    read, with the set's labels, that is not wanted, after all that is wanted
//	    has been applied; and it takes nothing over that is another's
//	R10 a ChildSet deletes all children only if it is asked to in so many words
//	R11 a failure that repeats is logged in full once, then at a falling rate for each
//	    key and message, each line with the number of those left out before it
//
// What Reconcile returns is explained at Func. An error wins over a Result; the
// backoff grows with each Retry, error and conflict of a key, and ends with Done,
// After and Terminal, and when an event says that something else is wanted of the
// key's object. It never holds up an event: Add does not wait.
//
// # Names of children
//
// A parent's name may have 253 characters, a Service's 63, and parents' names are the
// users' to choose. ChildName, ChildDNSLabel and LabelValue make valid names and label
// values of whatever they are given, unchanged where that is possible, and different
// ones for different parents and parts. Two parents whose children have one name would
// each undo what the other does, for ever.
//
// A ChildSet applies the children that are wanted and prunes the rest (childset.go);
// SetControllerReference makes a parent own a child (owner.go). Conditions keeps the
// conditions of a status (condition.go).
//
// # Start and end
//
// New starts nothing. Run starts the sources, waits for them, and starts the workers.
// When its context ends, sources and queue stop, no worker takes another key, and a
// reconcile in flight may finish: its context goes on until Options.DrainTimeout has
// passed. Run returns when all has ended; a reconcile that ignores its context keeps
// it waiting, and is named in the log. A source that returns an error or panics ends
// the controller with that error.
//
// # Logging
//
// The context of a reconcile has a logr.Logger with controller, key and reconcileID.
// Level 0 has what a person must see: errors, panics, overruns. Conflicts and waits
// are at V(1). A reconcile that asks for no logger costs none.
//
// # Tracing
//
// With a TracerProvider, of Options or of the manager, each reconcile is a span, and its
// context and its logger carry it. An event that names a key begins a trace: its span has
// two children, the time in the queue and the reconcile. When several events lead to one
// reconcile it belongs to the trace of the first and links to the others, 16 at most;
// flyball.events counts them. A run that no event asked for, after a time or with backoff,
// begins a trace of its own, and links to the run that asked for it. Without a provider
// this costs nothing.
//
// # Concurrency
//
// One worker at most has a key. Every method is safe for concurrent use, and only Run
// blocks.
//
// # Testing
//
// What you give For or New is a function: call it. A Controller lives in a [testing/synctest] bubble,
// where deadlines and backoff cost no time. The decision about what follows is pure
// and is held by a table.
package reconcile
