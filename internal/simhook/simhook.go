// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package simhook lets a simulation decide what is left to chance, and hear
// what happens, so that a run can be repeated exactly.
//
//	production   no Hooks in the context ─▶ Of is nil ─▶ one comparison with nil
//	simulation   With(ctx, hooks) ─▶ Run(ctx) of whatever lives ─▶ Of(ctx)
//
// Whoever runs looks for the Hooks once, when its Run begins. Several goroutines
// that become ready at one moment run in an order that nobody knows: before each
// step that others can see, they ask for an instant of their own.
package simhook

import (
	"context"
	"math/rand/v2"
	"net"
	"time"
)

// Hooks are what a simulation brings. All methods are safe for concurrent use.
type Hooks interface {
	// Step blocks until an instant that no other step has, or until ctx ends.
	// The instant follows from point and key and from how often they came.
	Step(ctx context.Context, point, key string)
	// Instant is at, or the first instant after it that nobody has. The caller
	// has it from then on.
	Instant(at time.Time) time.Time
	// Wall is the time on the clock of the process. It can be stepped, back too, and
	// has no monotonic reading.
	Wall() time.Time
	// Stands reports whether the process stands still, so that none of its time counts.
	Stands() bool
	// Random is a number in [0, 1). It follows from what it is for and from how
	// often that came.
	Random(what string) float64
	// Reconcile is called in place of nothing before a reconcile, where a panic is
	// the reconcile's. It may panic, and block until ctx ends.
	Reconcile(ctx context.Context, controller, key string)
	// Listen is where a server of the process is reached in the simulation.
	Listen(ctx context.Context, address string) (net.Listener, error)
	// Note is told of one thing that happened. It does not block.
	Note(Note)
}

// Tell is the Step before a handler is called.
const Tell = "tell"

// What a Note is about.
type What string

const (
	// Stored: an informer's store has applied a batch.
	Stored What = "stored"
	// Epoch: the server's revisions went back, and the store follows them.
	Epoch What = "epoch"
	// Told: a handler is given an event.
	Told What = "told"
	// Heard: the handler has returned.
	Heard What = "heard"
	// Judged: a source has decided on an event.
	Judged What = "judged"
	// Enqueued: a key was added to a controller's queue.
	Enqueued What = "enqueued"
	// Taken: a worker has taken a key up.
	Taken What = "taken"
	// Begun and Ended: a reconcile.
	Begun What = "begun"
	Ended What = "ended"
)

// Note is one thing that happened. Which fields are set depends on What.
type Note struct {
	What What
	// Kind of an informer's objects, or the name of a controller.
	Kind string
	// Handler, source or outcome.
	Name string
	// Key of an object or a reconcile.
	Key string
	// UID and Version of an object; 0: it is not there.
	UID     string
	Version uint64
	// Reached is the version up to which a store tells everything.
	Reached uint64
	// Own: it follows from a write of this process.
	Own bool
	// Whole: of all objects of the kind, and not of a selection.
	Whole bool
	// Quiet: nothing changed, as in a resync.
	Quiet bool
	// Count of what followed.
	Count int
	// After is how long until the next run.
	After time.Duration
	// Text of the error that a reconcile ended with.
	Text string
}

// RunKey is the key by which the context of a reconcile answers with its Run.
type RunKey struct{}

// Run is one reconcile.
type Run struct{ Controller, Key string }

// RunOf is the reconcile that ctx belongs to; ok: there is one.
func RunOf(ctx context.Context) (r Run, ok bool) {
	r, ok = ctx.Value(RunKey{}).(Run)
	return r, ok
}

type hooksKey struct{}

// With is ctx for what a simulation runs.
func With(ctx context.Context, h Hooks) context.Context {
	return context.WithValue(ctx, hooksKey{}, h)
}

// Of are the Hooks of ctx; nil: there is no simulation.
func Of(ctx context.Context) Hooks {
	h, _ := ctx.Value(hooksKey{}).(Hooks)
	return h
}

// Listen opens a TCP port, or what the simulation of ctx has in place of ports.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if h := Of(ctx); h != nil {
		return h.Listen(ctx, address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// Wall is the time on the wall clock, of h if that is not nil, without a monotonic
// reading. It is for what outlives the process or is shared with others: how long
// something takes is for time.Since.
func Wall(h Hooks) time.Time {
	if h == nil {
		return time.Now().Round(0)
	}
	return h.Wall()
}

// Float64 is a random number in [0, 1), of h if that is not nil.
func Float64(h Hooks, what string) float64 {
	if h == nil {
		return rand.Float64()
	}
	return h.Random(what)
}

// Duration is a random time in [0, n), of h if that is not nil. It is 0 if n is
// not above 0.
func Duration(h Hooks, what string, n time.Duration) time.Duration {
	return time.Duration(Float64(h, what) * float64(max(n, 0)))
}
