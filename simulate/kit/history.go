// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/manager"
)

// Values of Event.What. Events of informers, handlers, sources and reconciles have the
// names of package simhook: stored, epoch, told, heard, judged, enqueued, taken, begun
// and ended.
const (
	Stored    = string(simhook.Stored)    // an informer's store changed, or reached a version
	Epoch     = string(simhook.Epoch)     // the store follows a server that went back in time
	Delivered = string(simhook.Delivered) // a handler is called
	Handled   = string(simhook.Handled)   // the handler has returned
	Evaluated = string(simhook.Evaluated) // a source has mapped an event to keys
	Enqueued  = string(simhook.Enqueued)  // a key was added to a queue
	Canceled  = string(simhook.Canceled)  // a key was removed from a queue, since there is no object
	Omitted   = string(simhook.Omitted)   // a source has kept back the event of a reconcile's own write
	Taken     = string(simhook.Taken)     // a worker has taken up a key
	Begun     = string(simhook.Begun)     // a reconcile began
	Ended     = string(simhook.Ended)     // a reconcile ended

	Unfinished = string(simhook.Unfinished) // the reconcile before was done although work was left

	Called   = "called"   // the kit calls for a key at rest, as a resync would
	Asked    = "asked"    // a request arrived at the server
	Answered = "answered" // the request ended
	Changed  = "changed"  // the server created a revision
	Made     = "made"     // a Service has made something for the object of this key
	Sent     = "sent"     // the server sent an event on a watch

	Fault  = "fault"  // a fault begins
	Over   = "over"   // a fault ends
	Healed = "healed" // no faults from here on

	Started = "started" // a process started
	Crashed = "crashed" // a process crashed
	Exited  = "exited"  // the manager of a process has returned

	Rest     = "rest"     // nothing moves any more
	Restless = "restless" // something still moves at the end of the bound
	Endless  = "endless"  // there are too many events, and the run ends
	Finished = "finished" // only time has passed
	Stopping = "stopping" // the run ends, and everything is stopped at once
	Check    = "check"    // the result of a check of the scenario
	Mutated  = "mutated"  // a shared object was modified
	Erased   = "erased"   // a write has removed what another client had written since the writer's read
	Counted  = "counted"  // what a process holds
	Leftover = "leftover" // what a process has left behind
	Logged   = "logged"   // a log line
)

// unseen is the Name of the Started event of a program whose reconciles are not recorded.
const unseen = "main"

// Event is one thing that happened. What determines which fields are set.
type Event struct {
	// At is the time since the start of the run.
	At   time.Duration `json:"at"`
	What string        `json:"what"`
	// Who is a process, "user", "cluster" or a fault.
	Who string `json:"who,omitempty"`
	// Kind of objects, such as "Deployment.apps", or the name of a controller.
	Kind string `json:"kind,omitempty"`
	// Name of a handler, source, fault, check, outcome or verb.
	Name string `json:"name,omitempty"`
	// Key of an object or a reconcile; for a fault in a process, the process.
	Key string `json:"key,omitempty"`
	UID string `json:"uid,omitempty"`
	// Version of the object; 0: it does not exist.
	Version uint64 `json:"version,omitempty"`
	// Reached is the version up to which a store is complete.
	Reached uint64 `json:"reached,omitempty"`
	// Own means that it follows from a write of the same process.
	Own bool `json:"own,omitempty"`
	// Whole means all objects of the kind.
	Whole bool `json:"whole,omitempty"`
	// Quiet means that nothing changed, or that a crashed or stopped process has exited.
	Quiet bool `json:"quiet,omitempty"`
	// Count of resulting keys, of what is left, of what is held, or of the causes of a
	// reconcile.
	Count int `json:"count,omitempty"`
	// Causes of a reconcile, the first and the last, that are events of objects.
	Causes []Cause `json:"causes,omitempty"`
	// After is the time until the next run of a key.
	After time.Duration `json:"after,omitempty"`
	// Holder of a Lease, for changed.
	Holder string `json:"holder,omitempty"`
	// Delay of what is sent from then on, for a fault.
	Delay time.Duration `json:"delay,omitempty"`
	// Request is the number of the request, from 1, for asked, answered, sent, made and
	// changed.
	Request int `json:"request,omitempty"`
	// Run is the controller and key of the reconcile that makes the request. For changed,
	// see the request.
	Run string `json:"run,omitempty"`
	// Shard that this reconcile works on, of replicas that share objects; nil: on none.
	Shard *int `json:"shard,omitempty"`
	// Code of an answer; 0: the connection broke.
	Code int    `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
}

// Cause is the event of an object for which a reconcile ran. A version of 0 is not known.
type Cause = simhook.Cause

// String returns the event as a line.
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

// History is the record of one run, in order.
type History struct {
	// Test and Seed identify the run.
	Test string `json:"test"`
	Seed uint64 `json:"seed"`
	// Module, Go and Commit are the versions it ran with.
	Module string `json:"module,omitempty"`
	Go     string `json:"go,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Plan of the faults, as drawn from the seed.
	Plan Plan `json:"plan"`
	// Bound on coming to rest after the faults, and on any wait that no fault excuses.
	Bound time.Duration `json:"bound"`
	// Audit is the interval of informer audits; 0: never.
	Audit time.Duration `json:"audit,omitempty"`
	// Lease of the leader election; empty: none. Unguarded are the kinds that are
	// written without leading.
	Lease     string   `json:"lease,omitempty"`
	Unguarded []string `json:"unguarded,omitempty"`
	// Sharing of the objects among replicas; nil: there is none.
	Sharing *sharing `json:"sharing,omitempty"`
	// Timed are controllers that V26 does not check.
	Timed []string `json:"timed,omitempty"`
	// Converted are kinds that a webhook converts: a fault of the process that serves
	// it keeps every process from listing them.
	Converted []string `json:"converted,omitempty"`
	// Inexact is why another run of the seed may differ. Empty: it may not.
	Inexact    string      `json:"inexact,omitempty"`
	Events     []Event     `json:"events"`
	Violations []Violation `json:"violations,omitempty"`

	abandoned bool // the run has not ended
}

// sharing is how the replicas of a program share its objects.
type sharing struct {
	// Lease of the plan as namespace/name. Those of members and shards begin with it.
	Lease string    `json:"lease"`
	By    shards.By `json:"by"`
	Count int       `json:"count"`
	// Controllers by their names, those that were added before Run.
	Controllers map[string]divided `json:"controllers,omitempty"`
}

// divided is how replicas share the keys of one controller.
type divided struct {
	// Kind of the objects that keys are of; empty: of none.
	Kind string `json:"kind,omitempty"`
	// Singleton and OwnShards are as in reconcile.Snapshot.
	Singleton bool `json:"singleton,omitempty"`
	OwnShards bool `json:"ownShards,omitempty"`
}

// add records the controllers of a process. All processes have the same.
func (s *sharing) add(of manager.Snapshot) {
	for _, c := range of.Controllers {
		one := divided{Singleton: c.Singleton, OwnShards: c.OwnShards}
		for _, from := range c.Sources {
			if from.Self {
				one.Kind = from.Kind.String()
			}
		}
		if s.Controllers == nil {
			s.Controllers = map[string]divided{}
		}
		s.Controllers[c.Name] = one
	}
}

// has reports whether e concerns one of the Leases.
func (s *sharing) has(e Event) bool {
	return s != nil && e.Kind == leases && (e.Key == s.Lease || strings.HasPrefix(e.Key, s.Lease+"-"))
}

// Violation is one violated invariant or check.
type Violation struct {
	// Invariant such as "V4", or "scenario".
	Invariant string `json:"invariant"`
	// Text describes what happened, and what was promised.
	Text string `json:"text"`
	// Event is the index of the event that shows it; -1: none.
	Event int `json:"event"`
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// counts reports whether e must be the same in each run of the seed. Log lines may
// contain addresses. A crashed or stopped process exits when its last goroutines have ended,
// in any order. Idle workers take up keys when they are added, in any order, with no effect
// before each has its own instant and begins, or is dropped, since its shard is not held.
func (e Event) counts() bool {
	return e.What != Logged && e.What != Taken && (e.What != Exited && e.What != Canceled || !e.Quiet)
}

// Hash identifies the history. It covers all events except log lines, events that show
// which worker was faster to take up a key, and events after the end of the run.
func (h *History) Hash() string {
	sum := sha256.New()
	for _, i := range h.hashedEvents() {
		e := h.Events[i]
		e.Text = ""
		_, _ = fmt.Fprintf(sum, "%+v\n", e)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// healedAt returns when the faults ended; ok: they did.
func (h *History) healedAt() (at time.Duration, ok bool) {
	for _, e := range h.Events {
		if e.What == Healed {
			return e.At, true
		}
	}
	return 0, false
}

// last returns the index of the last such event; -1: there is none.
func (h *History) last(what string) int {
	for i := len(h.Events) - 1; i >= 0; i-- {
		if h.Events[i].What == what {
			return i
		}
	}
	return -1
}

// renews reports whether e concerns the Lease of the leader election, which its holder
// keeps renewing, or one of replicas that share objects.
func (h *History) renews(e Event) bool {
	return h.Sharing.has(e) || h.Lease != "" && e.Kind == leases && e.Key == h.Lease
}

func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

func (h *History) hashedEvents() (out []int) {
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

// retried reports whether an outcome leads to a retry with backoff.
func retried(outcome string) bool {
	switch outcome {
	case "retry", "conflict", "error", "panic", "timeout", "stopped": // stopped: for lack of the lease
		return true
	}
	return false
}
