// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// What an Event of a History tells of. Those of informers, handlers, sources and
// reconciles carry the words of the framework itself: stored, epoch, told, heard,
// judged, enqueued, taken, begun and ended.
const (
	Stored   = string(simhook.Stored)   // an informer's store changed, or reached a version
	Epoch    = string(simhook.Epoch)    // the store follows a server that went back
	Told     = string(simhook.Told)     // a handler is called
	Heard    = string(simhook.Heard)    // it has returned
	Judged   = string(simhook.Judged)   // a source has decided how many keys an event leads to
	Enqueued = string(simhook.Enqueued) // a key was added to a queue
	Taken    = string(simhook.Taken)    // a worker has taken a key up
	Begun    = string(simhook.Begun)    // a reconcile began
	Ended    = string(simhook.Ended)    // and ended

	Asked    = "asked"    // a request arrived at the server
	Answered = "answered" // and is over
	Changed  = "changed"  // the server made a revision
	Sent     = "sent"     // the server sent an event on a watch

	Fault  = "fault"  // something goes wrong
	Over   = "over"   // and is right again
	Healed = "healed" // nothing goes wrong from here on

	Started = "started" // a process
	Crashed = "crashed" // it did
	Exited  = "exited"  // its manager has returned

	Rest     = "rest"     // nothing moves any more
	Restless = "restless" // something still moves when all time is up
	Finished = "finished" // time alone has passed
	Stopping = "stopping" // the run ends, and all is stopped at once
	Check    = "check"    // a check of the scenario, and what it said
	Mutated  = "mutated"  // somebody changed an object that all share
	Counted  = "counted"  // how much a process holds
	Leftover = "leftover" // what a process has left behind
	Logged   = "logged"   // a line of the log
)

// Event is one thing that happened. Which fields are set depends on What.
type Event struct {
	// At is when, since the start of the run.
	At   time.Duration `json:"at"`
	What string        `json:"what"`
	// Who: a process, "user", "cluster" or a fault.
	Who string `json:"who,omitempty"`
	// Kind of objects, such as "Deployment.apps", or the name of a controller.
	Kind string `json:"kind,omitempty"`
	// Name of a handler, source, fault, check, outcome or verb.
	Name string `json:"name,omitempty"`
	// Key of an object or a reconcile; of a fault in a process, which.
	Key string `json:"key,omitempty"`
	UID string `json:"uid,omitempty"`
	// Version of the object; 0: it is not there.
	Version uint64 `json:"version,omitempty"`
	// Reached is up to where a store tells everything.
	Reached uint64 `json:"reached,omitempty"`
	// Own: it follows from a write of the same process.
	Own bool `json:"own,omitempty"`
	// Whole: of all objects of the kind.
	Whole bool `json:"whole,omitempty"`
	// Quiet: nothing changed.
	Quiet bool `json:"quiet,omitempty"`
	// Count of what follows, of what is left, or of what is held.
	Count int `json:"count,omitempty"`
	// After is how long until the next run of a key.
	After time.Duration `json:"after,omitempty"`
	// Holder that a Lease names, of changed.
	Holder string `json:"holder,omitempty"`
	// Delay of what is sent from then on, by a fault.
	Delay time.Duration `json:"delay,omitempty"`
	// Request is its number, of asked, answered and sent; from 1.
	Request int `json:"request,omitempty"`
	// Code of an answer; 0: the connection broke.
	Code int    `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
}

// String is the event as a line.
func (e Event) String() string {
	text := fmt.Sprintf("%12s %-8s %-10s", e.At, e.What, e.Who)
	for _, part := range []string{e.Kind, e.Name, e.Key} {
		if part != "" {
			text += " " + part
		}
	}
	if e.Version > 0 {
		text += fmt.Sprintf(" @%d", e.Version)
	}
	if e.Holder != "" {
		text += " held by " + e.Holder
	}
	if e.Code > 0 {
		text += fmt.Sprintf(" %d", e.Code)
	}
	if e.After > 0 {
		text += " again after " + e.After.String()
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// History is all that happened in one run, in its order.
type History struct {
	// Test and Seed tell the run.
	Test string `json:"test"`
	Seed uint64 `json:"seed"`
	// Module, Go and Commit that it ran with.
	Module string `json:"module,omitempty"`
	Go     string `json:"go,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Plan of the faults, as drawn from the seed.
	Plan Plan `json:"plan"`
	// Bound is how long coming to rest may take after the faults, and any wait
	// that is not put off by one.
	Bound time.Duration `json:"bound"`
	// Audit is how often informers compare themselves with the server; 0: never.
	Audit time.Duration `json:"audit,omitempty"`
	// Lease by which processes elect who works; empty: they do not. Unguarded are
	// the kinds that are written without leading.
	Lease     string   `json:"lease,omitempty"`
	Unguarded []string `json:"unguarded,omitempty"`
	// Converted are kinds that a webhook converts: what happens to the process that
	// serves it keeps every process from listing them.
	Converted []string `json:"converted,omitempty"`
	// Inexact says why another run of the seed may differ. Empty: it may not.
	Inexact    string      `json:"inexact,omitempty"`
	Events     []Event     `json:"events"`
	Violations []Violation `json:"violations,omitempty"`

	abandoned bool // the run has not ended
}

// Violation is one thing that was promised and not kept.
type Violation struct {
	// Invariant that does not hold, such as "V4", or "scenario".
	Invariant string `json:"invariant"`
	// Text says what happened, and what was promised.
	Text string `json:"text"`
	// Event is the index of the event that shows it; -1: none does.
	Event int `json:"event"`
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// counts reports whether e is part of what must be the same each time. Lines of the
// log may name addresses. Workers that are free take keys up at the moment these
// are added, in any order; nothing follows from it before each has an instant of
// its own and begins.
func (e Event) counts() bool { return e.What != Logged && e.What != Taken }

// Hash tells histories apart, by all events but lines of the log, those that tell
// which worker was the quicker to take a key up, and what comes after the run, when
// all is stopped at once.
func (h *History) Hash() string {
	sum := sha256.New()
	for _, i := range h.told() {
		e := h.Events[i]
		e.Text = ""
		_, _ = fmt.Fprintf(sum, "%+v\n", e)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// healedAt is when the faults ended; ok: they did.
func (h *History) healedAt() (at time.Duration, ok bool) {
	for _, e := range h.Events {
		if e.What == Healed {
			return e.At, true
		}
	}
	return 0, false
}

// at is the index of the last event of a kind; -1: there is none.
func (h *History) last(what string) int {
	for i := len(h.Events) - 1; i >= 0; i-- {
		if h.Events[i].What == what {
			return i
		}
	}
	return -1
}

// renews reports whether e is about the Lease by which the processes elect who works:
// its holder renews it for as long as it lives.
func (h *History) renews(e Event) bool {
	return h.Lease != "" && e.Kind == leases && e.Key == h.Lease
}

func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// told are the indices of the events that count.
func (h *History) told() (out []int) {
	for i, e := range h.Events {
		if e.What == Stopping {
			break
		}
		if e.counts() {
			out = append(out, i)
		}
	}
	return out
}

func (h *History) violate(invariant, text string, event int) {
	h.Violations = append(h.Violations, Violation{invariant, text, event})
}

// retried reports whether an outcome leads to another run with backoff.
func retried(outcome string) bool {
	switch outcome {
	case "retry", "conflict", "error", "panic", "timeout", "stopped": // the last for want of the lease
		return true
	}
	return false
}
