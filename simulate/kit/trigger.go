// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// Faults at random times mostly happen while nothing else does. Therefore writes trigger
// those that allow it: a run of the same seed without faults, the probe, shows the writes,
// and each operation chooses one of them. It chooses the class first, so that the single
// write that removes a finalizer is as likely as the many that update a status.

// probed is the result of a probe.
type probed struct {
	moments []moment
	watched []string // kinds that processes watch
}

// moment is a class of writes in the probe.
type moment struct {
	write string // as for BeforeWrite
	user  bool
	at    []time.Duration // of each write, in order
	first []int           // indices in at: the first write of each object
	holds []time.Duration // from each until just after the user's next write; 0: there is none
}

// allowsWriteTrigger reports whether a write can trigger the operation.
func (o Op) allowsWriteTrigger() bool {
	switch o.Verb {
	case crash, timeTravel, stop, pause, cut, partition, lag, slow, loseResponse, reject, foreignWrite:
		return true
	}
	return false
}

// stretches reports whether the operation suspends the world, or delays an observer,
// for a time that can be chosen.
func (o Op) stretches() bool {
	switch o.Verb {
	case crash, stop, pause, partition, lag:
		return true
	}
	return false
}

// The sequences of an operation's draws, see spread.
const (
	ofTaking = iota
	ofTriggering
	ofClass
	ofNth
	ofPoint
	ofHold
)

// firstShare is the fraction of the operations triggered by writes for which a first write
// does.
const firstShare = 0.5

// writeShare is the fraction of the operations that writes can trigger for which they do.
const writeShare = 0.85

// isTriggeredByWrite reports whether a write triggers the operation with this seed.
func (o Op) isTriggeredByWrite(seed uint64) bool {
	return o.allowsWriteTrigger() && seededrand.Unit(seededrand.Drawn(seed, o.id, ofTriggering)) < writeShare
}

// triggerByWrite schedules the operation at one of the moments, and reports whether it did.
func (o *Op) triggerByWrite(seed uint64, found probed) bool {
	if !o.isTriggeredByWrite(seed) {
		return false
	}
	if o.Verb == slow {
		return o.slows(seed, found)
	}
	fit := found.fit(*o)
	if len(fit) == 0 {
		return false
	}
	m := fit[pick(seed, o.id, ofClass, len(fit))]
	nth := m.choose(seededrand.Unit(spread(seed, o.id, ofNth)))
	o.setTriggerAt(m, nth, pick(seed, o.id, ofPoint, 2) == 1, pick(seed, o.id, ofHold, 3) > 0)
	return true
}

// calls reports whether the moments are calls of a Service.
func (m moment) calls() bool {
	method, _, _ := strings.Cut(m.write, " ")
	return calls(method)
}

// choose returns the index of a write for u in [0, 1). Half of the range is for the
// first write of each object: a program that has made something and not yet recorded it
// is the most vulnerable, and later writes of a class outnumber the first ones.
func (m moment) choose(u float64) int {
	if u < firstShare {
		return m.first[min(int(u/firstShare*float64(len(m.first))), len(m.first)-1)]
	}
	return min(int((u-firstShare)/(1-firstShare)*float64(len(m.at))), len(m.at)-1)
}

func (p probed) fit(o Op) []moment {
	return slices.DeleteFunc(slices.Clone(p.moments), func(m moment) bool {
		return m.user && !o.stretches() && o.Verb != timeTravel && o.Verb != slow || o.Kind != "" && o.Verb != slow && !ofKind(kindIn(m.write), o.Kind) ||
			o.Verb == foreignWrite && (strings.HasPrefix(m.write, "create ") || m.calls()) // there is no object yet
	})
}

// setTriggerAt schedules the operation at the nth write of a class, counted from 0: after
// it if after is set and the verb allows it, and until the user's next write if held is
// set.
func (o *Op) setTriggerAt(m moment, nth int, after, held bool) {
	o.When = Trigger{Before: m.write, Nth: nth + 1, User: m.user}
	switch o.Verb {
	case crash, timeTravel, stop, pause, cut, partition, lag, slow:
		if m.user || after {
			o.When.Before, o.When.After = "", m.write
		}
	}
	if hold := m.holds[nth]; o.stretches() && hold > o.For && held {
		o.For = hold
	}
}

// varied returns the nth variation of plan, which was drawn from p. Operations with a
// given time are unchanged.
func (p Plan) varied(plan Plan, seed uint64, nth int, found probed) Plan {
	draw := func(name string, n int) int {
		return int(seededrand.Drawn(seed, "variation "+name, uint64(nth)) % uint64(n))
	}
	var free, moves []int
	for i, op := range plan {
		if op.free {
			free = append(free, i)
		}
		if op.free && op.When.Rate == 0 {
			moves = append(moves, i)
		}
	}
	out := slices.Clone(plan)
	switch {
	case nth%3 == 0 && len(free) > 1:
		i := free[draw("leaves out", len(free))]
		return slices.Delete(out, i, i+1)
	case nth%3 == 1 && len(moves) > 0:
		i := moves[draw("moves", len(moves))]
		op := out[i]
		op.For = p.lasts(op)
		op.near(out[i].When, found, draw)
		out[i] = op
		return out
	}
	ops := slices.DeleteFunc(slices.Clone(p), func(op Op) bool { return op.When != (Trigger{}) || !op.allowsWriteTrigger() })
	if len(ops) == 0 {
		return out
	}
	op, where := ops[draw("adds", len(ops))], Trigger{}
	if len(moves) > 0 {
		where = out[moves[draw("beside", len(moves))]].When
	}
	op.free = true
	if op.Verb == slow && op.Kind == "" && len(found.watched) > 0 {
		op.Kind = found.watched[draw("kind", len(found.watched))]
	}
	if op.near(where, found, draw) {
		out = append(out, op)
		out[len(plan)].id = out.nameOf(len(plan))
	}
	return out
}

// lasts returns the duration of the operation of p from which op was drawn.
func (p Plan) lasts(op Op) time.Duration {
	for i, of := range p {
		if p.nameOf(i) == op.id {
			return of.For
		}
	}
	return op.For
}

// neighbourhood is the greatest distance, in writes, of a nearby write.
const neighbourhood = 3

// near schedules the operation at a moment near where, or at any if where is zero. It
// reports whether there is one.
func (o *Op) near(where Trigger, found probed, draw func(string, int) int) bool {
	type one struct {
		moment
		nth int
	}
	var all []one
	for _, m := range found.fit(*o) {
		for nth := range m.at {
			all = append(all, one{m, nth})
		}
	}
	if len(all) == 0 {
		return false
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(a.at[a.nth], b.at[b.nth]) })
	i := draw("moment", len(all))
	if at, known := found.instant(where); known {
		i, _ = slices.BinarySearchFunc(all, at, func(a one, at time.Duration) int { return cmp.Compare(a.at[a.nth], at) })
		i = min(max(i+draw("by", 2*neighbourhood+1)-neighbourhood, 0), len(all)-1)
	}
	o.setTriggerAt(all[i].moment, all[i].nth, draw("point", 2) == 1, draw("hold", 3) > 0)
	return true
}

func (p probed) instant(t Trigger) (at time.Duration, known bool) {
	write := cmp.Or(t.Before, t.After)
	i := slices.IndexFunc(p.moments, func(m moment) bool { return m.write == write && m.user == t.User })
	if i < 0 || t.Nth < 1 || t.Nth > len(p.moments[i].at) {
		return 0, false
	}
	return p.moments[i].at[t.Nth-1], true
}

// slows chooses the kind that is slow, and whether it is so from the start or from a
// write of the user, of any kind.
func (o *Op) slows(seed uint64, found probed) bool {
	users := slices.DeleteFunc(slices.Clone(found.moments), func(m moment) bool { return !m.user })
	if len(found.watched) == 0 || len(users) == 0 {
		return false
	}
	if o.Kind == "" {
		o.Kind = found.watched[pick(seed, o.id, ofHold, len(found.watched))]
	}
	o.When = Trigger{At: time.Millisecond}
	if pick(seed, o.id, ofPoint, 2) == 1 {
		m := users[pick(seed, o.id, ofClass, len(users))]
		o.When = Trigger{Before: m.write, Nth: 1 + pick(seed, o.id, ofNth, len(m.at)), User: true}
	}
	return true
}

func kindIn(write string) string {
	kind := write[strings.LastIndex(write, " ")+1:]
	kind, _, _ = strings.Cut(kind, "/")
	return kind
}

func pick(seed uint64, id string, sequence, n int) int {
	return min(int(seededrand.Unit(spread(seed, id, sequence))*float64(n)), n-1)
}

// spread returns a number for a seed and a purpose, such that consecutive seeds fill
// the range evenly: each sequence advances by an irrational fraction of it.
func spread(seed uint64, id string, sequence int) uint64 {
	return seededrand.Drawn(0, id, uint64(sequence)) + seed*steps[sequence]
}

// steps are 2⁶⁴ divided by the powers of the root of x⁷ = x + 1, which fill the space
// of six sequences evenly.
var steps = [...]uint64{0xe60e2b722b53a801, 0xcebd76d9edb6a001, 0xb9c9aa3a51d00001, 0xa6f5777f6f888801, 0x9609c71eb7d03001, 0x86d516e50b049801}

// meeting is the point of a request at which a fault can happen.
type meeting int

const (
	leaving   meeting = iota // a write, before it is sent
	arriving                 // a write, at the server
	answering                // a write, after it is carried out
	sending                  // an event, before it is sent on a watch
)

// counts reports whether the operation is triggered by a count of requests.
func (t Trigger) counts() bool {
	return t.Write != "" || t.Event != "" || t.Before != "" || t.After != ""
}

// meets reports whether the trigger of the operation counts r.
func (o Op) meets(r simulate.Request, what meeting) bool {
	t := o.When
	switch {
	case what == sending:
		return t.Event != "" && ofKind(kindText(r), t.Event)
	case what == answering:
		return t.After != "" && o.ofWrite(r, t.After)
	case t.Before != "":
		return what == o.point() && o.ofWrite(r, t.Before)
	}
	return what == arriving && t.Write != "" && ofKind(kindText(r), t.Write)
}

// point returns where an operation before a write happens: a fault of a process happens
// before the process sends the write.
func (o Op) point() meeting {
	if subjects[o.Verb] == aProcess && !o.When.User {
		return leaving
	}
	return arriving
}

// ofWrite reports whether r is a write with this name, by a client that the trigger
// counts.
func (o Op) ofWrite(r simulate.Request, named string) bool {
	if o.When.User != (r.Client == "user") || o.Process != "" && o.Process != programOf(r.Client) {
		return false
	}
	return aim.Names(named, r)
}

func programOf(process string) string { return process[:max(strings.LastIndex(process, "-"), 0)] }
