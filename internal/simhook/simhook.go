// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package simhook lets a simulation decide what is otherwise left to chance,
// and observe what happens, so that a run can be repeated exactly.
//
//	production   no Hooks in the context ─▶ Of is nil ─▶ one comparison with nil
//	simulation   With(ctx, hooks) ─▶ Run(ctx) of each part ─▶ Of(ctx)
//
// Each part looks up the Hooks once, when its Run begins. Goroutines that
// become ready at the same moment run in an undefined order: before each step
// that others can observe, they ask for a distinct instant.
package simhook

import (
	"context"
	"math/rand/v2"
	"net"
	"time"
)

// Hooks are implemented by a simulation. All methods are safe for concurrent
// use.
type Hooks interface {
	// Step blocks until an instant that no other step has, or until ctx ends.
	// The instant depends only on point, key and their number of occurrences.
	Step(ctx context.Context, point, key string)
	// Instant reserves at, or the first free instant after it, and returns it.
	Instant(at time.Time) time.Time
	// Wall returns the process's wall clock time. It can be stepped, also
	// backwards, and has no monotonic reading.
	Wall() time.Time
	// Stands reports whether the process is stopped, so that its time does not
	// count.
	Stands() bool
	// Random returns a number in [0, 1). It depends only on what and its number
	// of occurrences.
	Random(what string) float64
	// Reconcile is called before each reconcile, within its recovery of panics.
	// It may panic, or block until ctx ends.
	Reconcile(ctx context.Context, controller, key string)
	// Listen returns the listener of a server of the process in the simulation.
	Listen(ctx context.Context, address string) (net.Listener, error)
	// Note reports one event. It does not block.
	Note(Note)
}

// Replay is implemented by the Hooks of a replay, which decides what its reconciles do instead of
// the queue.
type Replay interface {
	// Next blocks until the controller is to reconcile a key, and returns its text. false: ctx has
	// ended.
	Next(ctx context.Context, controller string) (key string, ok bool)
	// Unknown reports that nothing has called for the key that Next returned.
	Unknown(controller, key string)
	// Clock returns the time that a reconcile was given.
	Clock(controller, key string) time.Time
	// Chance returns the number that a reconcile was given.
	Chance(controller, key string) float64
}

// Deliver is the Step before a call of a handler.
const Deliver = "tell"

// What is the subject of a Note.
type What string

const (
	// Stored: an informer's store has applied a batch.
	Stored What = "stored"
	// Epoch: the server's revisions went back, and the store follows.
	Epoch What = "epoch"
	// Delivered: a handler receives an event.
	Delivered What = "told"
	// Handled: the handler has returned.
	Handled What = "heard"
	// Evaluated: a source has evaluated an event.
	Evaluated What = "judged"
	// Omitted: a source has kept back the event of a reconcile's own write. Text is the key
	// of the reconcile.
	Omitted What = "omitted"
	// Enqueued: a key was added to a controller's queue.
	Enqueued What = "enqueued"
	// Canceled: a key was removed from the queue, and no worker has it; Quiet: a worker has taken and
	// dropped it, since its shard is not held.
	Canceled What = "canceled"
	// Taken: a worker has taken a key.
	Taken What = "taken"
	// Begun and Ended: a reconcile.
	Begun What = "begun"
	Ended What = "ended"
	// Idle: a reconcile has written, and none follows unless others call for it.
	Idle What = "idle"
	// Unfinished: the reconcile before this one was done although work was left.
	Unfinished What = "unfinished"
)

// Note is one event. What determines which fields are set.
type Note struct {
	What What
	// Kind of an informer's objects, or the name of a controller.
	Kind string
	// Name of the handler or source, or the outcome.
	Name string
	// Key of an object or a reconcile.
	Key string
	// UID and Version of an object; 0: it does not exist.
	UID     string
	Version uint64
	// Reached is the version up to which a store is complete.
	Reached uint64
	// Own: caused by a write of this process.
	Own bool
	// Whole: of all objects of the kind, not of a selection.
	Whole bool
	// Quiet: nothing changed, as in a resync.
	Quiet bool
	// Count of the keys or events that followed, or of the causes of a reconcile.
	Count int
	// Causes of a reconcile, the first and the last, that name an object.
	Causes []Cause
	// After is the time until the next run.
	After time.Duration
	// Text of the reconcile's error.
	Text string
	// Wake calls for the key of Idle or Ended.
	Wake func()
}

// Cause is the event of an object for which a reconcile runs. A version of 0 is not known.
type Cause struct {
	Kind       string `json:"kind"`
	Key        string `json:"key"`
	OldVersion uint64 `json:"oldVersion,omitempty"`
	Version    uint64 `json:"version,omitempty"`
}

type hooksKey struct{}

// With returns a context for what a simulation runs.
func With(ctx context.Context, h Hooks) context.Context {
	return context.WithValue(ctx, hooksKey{}, h)
}

// Of returns the Hooks of ctx; nil: there is no simulation.
func Of(ctx context.Context) Hooks {
	h, _ := ctx.Value(hooksKey{}).(Hooks)
	return h
}

// Listen opens a TCP port, or the equivalent in the simulation of ctx.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if h := Of(ctx); h != nil {
		return h.Listen(ctx, address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// Wall returns the wall clock time, of h if not nil, without a monotonic
// reading. Use it for times that outlive the process or are shared; measure
// durations with time.Since.
func Wall(h Hooks) time.Time {
	if h == nil {
		return time.Now().Round(0)
	}
	return h.Wall()
}

// Float64 returns a random number in [0, 1), from h if not nil.
func Float64(h Hooks, what string) float64 {
	if h == nil {
		return rand.Float64()
	}
	return h.Random(what)
}

// Duration returns a random duration in [0, n), from h if not nil; 0 if n is
// not positive.
func Duration(h Hooks, what string, n time.Duration) time.Duration {
	return time.Duration(Float64(h, what) * float64(max(n, 0)))
}
