// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// Plan is the faults of a run: a list of independent operations, so that one can be
// removed without affecting the others.
type Plan []Op

// Op is one fault and when it happens. Create it with a function of this package, such
// as Crash, and set the time with one of its methods; without one, the seed decides
// whether and how often it happens.
type Op struct {
	// Verb is the name of the fault.
	Verb Verb `json:"verb"`
	// Kind that it affects, such as "Deployment" or "Deployment.apps". Empty: the seed
	// chooses a watched kind.
	Kind string `json:"kind,omitempty"`
	// Process that it affects, as named by World.RunAs. Empty: the seed chooses a
	// running one. Faults of the server affect all.
	Process string `json:"process,omitempty"`
	// For is its duration. 0: it is instantaneous.
	For time.Duration `json:"for,omitempty"`
	// Amount, depending on the fault: a delay in nanoseconds, revisions, requests.
	Amount int64 `json:"amount,omitempty"`
	// Code of a refusal: 429 or 503 for an Overload, 400 to 599 for a Reject.
	Code int `json:"code,omitempty"`
	// When it happens.
	When Trigger `json:"when"`

	id    string  // names its draws; for a drawn plan
	share float64 // fraction of the seeds that take it; for a swarm
	free  bool    // the seed has decided when; for a drawn plan
}

// Trigger is when an Op happens. Zero: the seed decides.
type Trigger struct {
	// Write and Event: before the Nth write of this kind is carried out, or before the
	// Nth event of it is sent on a watch.
	Write string `json:"write,omitempty"`
	Event string `json:"event,omitempty"`
	Nth   int    `json:"nth,omitempty"`
	// Before and After: before the Nth such write of a process is carried out, or after
	// that but before it is answered. A kind, such as "Pod" or "Deployment.apps",
	// optionally with a subresource, such as "Pod/status"; or a verb and a kind, such
	// as "create Pod". "*" is every kind.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// User counts the writes of the user instead of those of processes.
	User bool `json:"user,omitempty"`
	// At is a time after the start.
	At time.Duration `json:"at,omitempty"`
	// Rate is the average number per second of the fault phase.
	Rate float64 `json:"rate,omitempty"`
}

// OnWrite triggers the operation when the nth write of a kind, counted from 1, arrives
// at the server, before it is carried out. The user's writes count too.
func (o Op) OnWrite(kind string, nth int) Op {
	o.When = Trigger{Write: kind, Nth: nth}
	return o
}

// OnEvent triggers it before the nth event of a kind is sent on a watch.
func (o Op) OnEvent(kind string, nth int) Op {
	o.When = Trigger{Event: kind, Nth: nth}
	return o
}

// BeforeWrite triggers it before the nth such write of a process, counted from 1, is
// sent. If the fault ends the connection, as Cut and Crash do, the write is never
// carried out; if it suspends the process, as Pause does, the write arrives later. A
// write is named by a kind, "Pod", by a verb and a kind, "create Pod", with a
// subresource, "update Pod/status", or "*" for all.
func (o Op) BeforeWrite(write string, nth int) Op {
	o.When = Trigger{Before: write, Nth: nth}
	return o
}

// AfterWrite triggers it when the nth such write of a process has been carried out,
// before it is answered.
func (o Op) AfterWrite(write string, nth int) Op {
	o.When = Trigger{After: write, Nth: nth}
	return o
}

// ByUser makes BeforeWrite and AfterWrite count the user's writes instead of those of
// processes.
func (o Op) ByUser() Op {
	o.When.User = true
	return o
}

// At triggers it at a time after the start, in virtual time.
func (o Op) At(after time.Duration) Op {
	o.When = Trigger{At: after}
	return o
}

// Rate triggers it repeatedly, at this average number per virtual second.
func (o Op) Rate(perSecond float64) Op {
	o.When = Trigger{Rate: perSecond}
	return o
}

// Of sets the kind that it affects.
func (o Op) Of(kind string) Op {
	o.Kind = kind
	return o
}

// In sets the process that it affects, by the name given to World.RunAs.
func (o Op) In(process string) Op {
	o.Process = process
	return o
}

// Swarm returns a Plan of which each seed takes a part. Writes trigger most operations
// that allow it, see trigger.go; the others come at a random rate. Without ops it has all
// faults that a controller must survive, of which each seed takes a few.
func Swarm(ops ...Op) Plan {
	all := len(ops) == 0
	if all {
		ops = bearable()
	}
	plan := make(Plan, 0, len(ops))
	for _, op := range ops {
		op.When, op.share = Trigger{}, taken
		switch {
		case all && op.allowsWriteTrigger():
			op.share = takenByWrite
		case all:
			op.share = takenSpread
		}
		plan = append(plan, op)
	}
	return plan
}

// Without returns the plan without the operations with the same faults as ops, whatever
// their amount or duration, as in kit.Swarm().Without(kit.Rewind(1)).
func (p Plan) Without(ops ...Op) Plan {
	return slices.DeleteFunc(slices.Clone(p), func(op Op) bool {
		return slices.ContainsFunc(ops, func(other Op) bool { return other.Verb == op.Verb })
	})
}

// drawn returns the plan of one seed with all choices made. Draws are named by
// operation, so that operations do not affect each other. found is what can trigger
// them.
func (p Plan) drawn(seed uint64, found probed) Plan {
	out := Plan{}
	for i, op := range p {
		op.id, op.free = p.nameOf(i), false
		if op.When == (Trigger{}) {
			if !op.isTaken(seed) {
				continue
			}
			op.free = true
			if !op.triggerByWrite(seed, found) {
				op.When.Rate = slowest * math.Pow(fastest/slowest, seededrand.Unit(seededrand.Drawn(seed, op.id, 1)))
			}
		}
		out = append(out, op)
	}
	return out
}

func (p Plan) nameOf(i int) string {
	op := p[i]
	return fmt.Sprintf("fault %s %s%s %d %d %d", op.Verb, op.Kind, op.Process, op.Code, op.Amount, p[:i].count(op))
}

// allowsWriteTrigger reports whether a write can trigger an operation of the plan.
func (p Plan) allowsWriteTrigger() bool {
	return slices.ContainsFunc(p, func(op Op) bool { return op.When == (Trigger{}) && op.allowsWriteTrigger() })
}

// hasWriteTrigger reports whether the seed takes an operation that a write triggers, if
// there are writes.
func (p Plan) hasWriteTrigger(seed uint64) bool {
	for i, op := range p {
		op.id = p.nameOf(i)
		if op.When == (Trigger{}) && op.isTaken(seed) && op.isTriggeredByWrite(seed) {
			return true
		}
	}
	return false
}

// isTaken reports whether a seed takes an operation of a swarm.
func (o Op) isTaken(seed uint64) bool {
	return seededrand.Unit(spread(seed, o.id, ofTaking)) < cmp.Or(o.share, taken)
}

const (
	taken            = 0.35 // fraction of a swarm's operations
	takenByWrite     = 0.4  // of all faults, those that writes can trigger
	takenSpread      = 0.06 // of all faults, the others
	slowest, fastest = 0.02, 0.5
)

func (p Plan) count(op Op) (n int) {
	for _, other := range p {
		if other.Verb == op.Verb && other.Kind == op.Kind && other.Process == op.Process && other.Code == op.Code && other.Amount == op.Amount {
			n++
		}
	}
	return n
}

// MarshalJSON writes durations as text.
func (o Op) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"verb": o.Verb, "kind": o.Kind, "process": o.Process, "for": o.For.String(), "amount": o.Amount, "code": o.Code, "when": o.When.String()})
}

// String describes the trigger in words.
func (t Trigger) String() string {
	switch {
	case t.Write != "":
		return fmt.Sprintf("before write %d of %s", t.Nth, t.Write)
	case t.Before != "" || t.After != "":
		when, whose := "before", ""
		if t.After != "" {
			when = "after"
		}
		if t.User {
			whose = " of the user"
		}
		return fmt.Sprintf("%s write %d of %s%s", when, t.Nth, cmp.Or(t.Before, t.After), whose)
	case t.Event != "":
		return fmt.Sprintf("before event %d of %s", t.Nth, t.Event)
	case t.Rate > 0:
		return fmt.Sprintf("%.3f a second", t.Rate)
	case t.At > 0:
		return "at " + t.At.String()
	}
	return "as the seed decides"
}

// String names the operation.
func (o Op) String() string {
	text := string(o.Verb)
	if o.Kind != "" {
		text += " " + o.Kind
	}
	if o.Process != "" {
		text += " in " + o.Process
	}
	if o.Verb == clockStep {
		text += " by " + time.Duration(o.Amount).String()
	}
	if o.For > 0 {
		text += " for " + o.For.String()
	}
	return text
}

func (p Plan) misuse() error {
	for _, op := range p {
		if _, known := subjects[op.Verb]; !known {
			return fmt.Errorf("Config.Faults has an operation with the verb %q, which is none; make operations with the functions of package kit, such as kit.Crash()", op.Verb)
		}
		w := op.When
		set := cmp.Or(w.Write, w.Event, w.Before, w.After)
		for _, rule := range []struct {
			broken bool
			text   string
		}{
			{op.Process != "" && subjects[op.Verb] != aProcess, fmt.Sprintf("%s is a fault of the server, which all processes share; leave In(%q) out", op.Verb, op.Process)},
			{set != "" && w.Nth < 1, fmt.Sprintf("%s is to happen before number %d of %s; count from 1", op.Verb, w.Nth, set)},
			{op.Verb == timeTravel && op.Amount < 1, fmt.Sprintf("time travel goes behind %d revisions; give at least 1, such as kit.TimeTravel(6, time.Second)", op.Amount)},
			{op.Verb == rewind && op.Amount < 1, fmt.Sprintf("rewind undoes %d revisions; give at least 1, such as kit.Rewind(5)", op.Amount)},
			{op.Verb == reject && (op.Code < 400 || op.Code > 599 || op.Amount < 1), fmt.Sprintf("reject refuses %d writes with %d; give at least 1, and a code from 400 to 599, such as kit.Reject(2, 422)", op.Amount, op.Code)},
			{w.User && w.Before == "" && w.After == "", fmt.Sprintf("%s has ByUser and names no write of the user; say which, such as kit.Pause(time.Second).AfterWrite(\"update ConfigMap\", 1).ByUser()", op.Verb)},
			{w.Rate < 0 || w.Rate > 1000, fmt.Sprintf("%s has a rate of %v a second; give one from 0 to 1000", op.Verb, w.Rate)},
		} {
			if rule.broken {
				return fmt.Errorf("Config.Faults: %s", rule.text)
			}
		}
	}
	return nil
}

// strayed describes processes and kinds in the plan that are not among the names and the
// known kinds; empty: there are none.
func (p Plan) strayed(names []string, known []schema.GroupKind) string {
	for _, op := range p {
		if text := unknownKind(op, known); text != "" {
			return "Config.Faults: " + text
		}
		if op.Process != "" && !slices.Contains(names, op.Process) {
			return fmt.Sprintf("Config.Faults: %s is to happen in the process %q, and the scenario runs %s; name one that w.RunAs is given", op.Verb, op.Process, strings.Join(names, ", "))
		}
	}
	return ""
}

// unknownKind returns a kind that op names and that is not known; empty: none.
func unknownKind(op Op, known []schema.GroupKind) string {
	for _, named := range []string{op.Kind, op.When.Write, op.When.Event, kindIn(op.When.Before), kindIn(op.When.After)} {
		if named == "" || named == "*" || slices.ContainsFunc(known, func(k schema.GroupKind) bool { return ofKind(k.String(), named) }) {
			continue
		}
		var names []string
		for _, k := range known {
			if !slices.Contains(names, k.Kind) {
				names = append(names, k.Kind)
			}
		}
		slices.Sort(names)
		return fmt.Sprintf("%s names the kind %q, which the server never served; it knows %s", op.Verb, named, strings.Join(names, ", "))
	}
	return ""
}

// ofKind reports whether kind, such as "Deployment.apps", is the one that a user names,
// with or without its group.
func ofKind(kind, named string) bool {
	short, _, _ := strings.Cut(kind, ".")
	return named == kind || named == short
}
