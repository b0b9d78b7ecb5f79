// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// Pattern is the kind of mistake that a plan looks for.
type Pattern string

const (
	// Intermediate state: the process ends between two of its writes.
	Intermediate Pattern = "intermediate state"
	// Stale state: the program reads a state from before a change.
	Stale Pattern = "stale state"
	// Unobserved state: a state is over before the program sees it.
	Unobserved Pattern = "unobserved state"
	// LostAnswer: a write is carried out, and its answer is lost.
	LostAnswer Pattern = "lost answer"
	// Conflict: another client writes first, or the server refuses a write once.
	Conflict Pattern = "conflict"
	// Declarative: only what is wanted changes. There is no fault.
	Declarative Pattern = "declaration"
)

// plan is what is done to the program during a walk.
type plan struct {
	Walk    string   `json:"walk"`
	Pattern Pattern  `json:"pattern"`
	Faults  kit.Plan `json:"faults,omitempty"`
	// Hurry is the number of a step, from 1, that the user does not wait for; 0: none.
	Hurry int `json:"hurry,omitempty"`
	// class is what the plan is about, such as a kind of write. late is added to its rank.
	class string
	late  int
	// rank orders the plans of a pattern, those that are most likely to find something first, and turn all plans.
	rank, turn int
	// patient: the run waits long for the end state without the faults, to be sure that it does not come.
	patient bool
}

// ID names the plan. It depends on what the plan does.
func (p plan) ID() string {
	text, err := json.Marshal(p)
	if err != nil {
		text = fmt.Append(nil, p.Faults)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// travels reports whether the process starts again against a server that lags behind. With streaming lists (KEP-3157) a
// client waits until it does not, so such a server offers none.
func (p plan) travels() bool {
	return slices.ContainsFunc(p.Faults, func(op kit.Op) bool { return op.Verb == kit.TimeTravel(1, 0).Verb })
}

// String describes the plan as a person reads it.
func (p plan) String() string {
	var parts []string
	for _, op := range p.Faults {
		parts = append(parts, op.String()+" "+op.When.String())
	}
	if p.Hurry > 0 {
		parts = append(parts, fmt.Sprintf("the user does not wait for step %d", p.Hurry))
	}
	return fmt.Sprintf("walk %q: %s", p.Walk, cmp.Or(strings.Join(parts, ", and "), "no fault"))
}

// moment is a write of the reference run at which something can happen.
type moment struct {
	ask
	asked, done int  // its number among the writes of its name that were asked for, and carried out
	first       bool // of its name for this object in this step
}

// momentsOf returns the writes of a run that a plan can name, in their order.
func momentsOf(t *trial) (out []moment) {
	asked, done, known := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, a := range t.asks {
		if a.Who == cluster || ignored(a.Of.Kind) {
			continue
		}
		class := a.Who + " " + a.Write
		m := moment{ask: a}
		asked[class]++
		m.asked = asked[class]
		if a.done() {
			done[class]++
			m.done = done[class]
		}
		object := fmt.Sprint(class, a.Step, a.Of)
		m.first = !known[object]
		known[object] = true
		out = append(out, m)
	}
	return out
}

// after returns op, when the write has been carried out.
func (m moment) after(op kit.Op) kit.Op {
	op = op.AfterWrite(m.Write, m.done)
	if m.Who == user {
		op = op.ByUser()
	}
	return op
}

// before returns op, before the write is carried out.
func (m moment) before(op kit.Op) kit.Op {
	op = op.BeforeWrite(m.Write, m.asked)
	if m.Who == user {
		op = op.ByUser()
	}
	return op
}

// pace is how long things last.
type pace struct {
	down time.Duration // of a process that has crashed
	// blind is how long a program does not see the changes of a kind: longer than most retries.
	blind time.Duration
	// poke is how long after the beginning of that its object is changed, so that it reads.
	poke time.Duration
	// over is how long a process is down, or stands still, beyond the next step of the user.
	over time.Duration
	// loose: steps take another time in each run. Times of plans then follow other faults, or rest.
	loose bool
}

// beyond returns how long something lasts that ends after a step that took so long.
func (p pace) beyond(took time.Duration) time.Duration {
	if p.loose {
		return p.over
	}
	return took + p.over
}

// later returns when something happens that follows what happened at a time.
func (p pace) later(at time.Duration) time.Duration {
	if p.loose {
		return p.poke
	}
	return at + p.poke
}

var (
	virtual = pace{down: time.Second, blind: 40 * time.Second, poke: 5 * time.Second, over: 5 * time.Second}
	byClock = pace{down: 200 * time.Millisecond, blind: 6 * time.Second, poke: 500 * time.Millisecond, over: time.Second, loose: true}
)

// The plans of a walk that go back in time: at most so many, and to changes of one sort in one step.
const (
	mostTravels = 48
	mostOfSort  = 2
)

// plansOf returns the plans for the last step of a walk, by the analysis of a run without faults. Earlier steps
// are the last steps of other walks. all: also those whose fault meets the same state as that of another one.
func plansOf(walk string, t *trial, owners []string, p pace, all bool) []plan {
	if len(t.took) == 0 {
		return nil
	}
	a := analysis{walk: walk, t: t, moments: momentsOf(t), last: len(t.took) - 1, owners: owners, pace: p, all: all, states: map[string]bool{}}
	a.crashes()
	a.refusals()
	a.blindness()
	a.travels()
	a.oversights()
	a.byCluster()
	seen := map[string]bool{}
	return slices.DeleteFunc(a.plans, func(p plan) bool {
		again := seen[p.ID()]
		seen[p.ID()] = true
		return again
	})
}

type analysis struct {
	walk    string
	t       *trial
	moments []moment
	last    int      // step
	owners  []string // kinds of the user's objects
	pace    pace
	plans   []plan
	all     bool
	states  map[string]bool // at which faults have plans
}

// changes returns how many changes there were until a time, of a kind or by a client; empty: all.
func (a *analysis) changes(of string, until time.Duration) (n int) {
	for _, c := range a.t.changes {
		if c.At < until && !ignored(c.Of.Kind) && !(isHistory(c.Of.Kind) && c.Who == cluster) && (of == "" || c.Of.Kind == of || c.Who == of) {
			n++
		}
	}
	return n
}

// again reports whether a fault has a plan at the same state already, such as after a write that has changed nothing.
func (a *analysis) again(fault string, state ...int) bool {
	at := fmt.Sprint(fault, state)
	known := a.states[at]
	a.states[at] = true
	return known && !a.all
}

// add adds a plan. Of those with one class the first ones are the most promising.
func (a *analysis) add(pattern Pattern, class string, hurry int, faults ...kit.Op) {
	a.addLate(0, pattern, class, hurry, faults...)
}

// addLate is add for plans that are less promising than the first ones of other classes.
func (a *analysis) addLate(late int, pattern Pattern, class string, hurry int, faults ...kit.Op) {
	a.plans = append(a.plans, plan{Walk: a.walk, Pattern: pattern, Faults: faults, Hurry: hurry, class: string(pattern) + class, late: late})
}

// of returns the writes of a step by a client.
func (a *analysis) of(step int, who string) (out []moment) {
	for _, m := range a.moments {
		if m.Step == step && m.Who == who {
			out = append(out, m)
		}
	}
	return slices.SortedStableFunc(slices.Values(out), func(x, y moment) int {
		switch {
		case x.first == y.first:
			return 0
		case x.first:
			return -1
		}
		return 1
	})
}

// crashes end the process after each of its writes, and lose the answer to each.
func (a *analysis) crashes() {
	for _, m := range a.of(a.last, operator) {
		if m.done == 0 {
			continue
		}
		if !a.again("crash", a.changes("", m.Done+1), a.changes(cluster, m.Done+a.pace.down)) {
			a.add(Intermediate, m.Write, 0, m.after(kit.Crash(a.pace.down)))
		}
		a.add(LostAnswer, m.Write, 0, m.after(kit.LoseResponse()))
	}
	if a.last == 0 {
		return
	}
	// It is down while the user goes on. What it misses matters more than what it has written.
	down := a.pace.beyond(a.t.took[a.last-1])
	for _, m := range a.of(a.last-1, operator) {
		if m.done > 0 && !a.again("down", a.changes("", m.Done+1)) {
			a.add(Intermediate, "down "+a.walk, a.last, m.after(kit.Crash(down)))
		}
	}
}

// refusals refuse each write once.
func (a *analysis) refusals() {
	for _, m := range a.of(a.last, operator) {
		verb, _, _ := strings.Cut(m.Write, " ")
		if (verb == "update" || verb == "patch") && a.t.existed(m.Of, m.At) {
			a.add(Conflict, m.Write, 0, m.before(kit.ForeignWrite()))
		}
		a.add(Conflict, "refused "+m.Write, 0, m.before(kit.Reject(1, 500)))
	}
}

// blindness hides the changes of one kind for a while, while others are seen.
func (a *analysis) blindness() {
	for _, who := range []string{operator, user} {
		for _, m := range a.of(a.last, who) {
			if m.done == 0 || !slices.Contains(a.t.watched, m.Of.Kind) || strings.Contains(m.Write, "/") && !m.first {
				continue
			}
			hidden, late := m.before(kit.Slow(a.pace.blind, a.pace.blind).Of(m.Of.Kind)), 0
			from, until := a.changes(m.Of.Kind, m.At), a.changes(m.Of.Kind, m.At+a.pace.blind)
			for _, owner := range a.owners {
				if owner == m.Of.Kind || !slices.Contains(a.t.watched, owner) {
					continue
				}
				late = 1 // the program may not look again
				if !a.again("poked by "+owner+m.Of.Kind, from, until, a.changes("", m.At+a.pace.poke)) {
					a.add(Stale, "poked "+m.Write, 0, hidden, kit.ForeignWrite().Of(owner).At(a.pace.later(m.At)))
				}
			}
			if (from < until || a.all) && !a.again("hidden "+m.Of.Kind, from, until) { // else it misses nothing
				a.addLate(late, Stale, m.Write, 0, hidden)
			}
		}
	}
}

// travels restart the process against a server that lags behind what it has seen: first where it would delete once more
// what it has deleted for another wish of the user.
func (a *analysis) travels() {
	var last change // of the walk
	for _, c := range a.t.changes {
		if c.Step == a.last && !excused(c.Of.Kind) {
			last = c
		}
	}
	n, sorts := 0, map[string]int{}
	for _, c := range slices.Backward(a.t.changes) {
		if c.At > last.At || n == mostTravels || !a.mattersTo(c) {
			continue
		}
		sort := fmt.Sprint(c.Step, c.Verb, c.Of.Kind)
		if sorts[sort]++; sorts[sort] > mostOfSort {
			continue
		}
		if back := int(last.Version) - int(c.Version) + 1; back > 0 {
			later := a.pace.later(last.At) // it rests
			behind := kit.TimeTravel(back, a.pace.down).At(later.Round(time.Millisecond))
			switch {
			case c.Step < a.last && c.Who == operator && isDeletion(c): // when it was about to delete
				a.add(Stale, "behind deletion of "+c.Of.Kind+a.walk, 0, behind)
			case c.Step == a.last && c.Who == user && a.t.deletesIn(a.last-1): // when something else was wanted
				a.add(Stale, "behind "+a.walk, 0, behind)
			default:
				a.addLate(1, Stale, "behind "+fmt.Sprint(c.Step == a.last)+c.Verb+c.Of.Kind, 0, behind)
			}
			n++
		}
	}
}

// mattersTo reports whether a program that does not know of a change may do harm.
func (a *analysis) mattersTo(c change) bool {
	return !excused(c.Of.Kind) && slices.Contains(a.t.watched, c.Of.Kind) && (c.Who == user || c.Verb != "updated" || isDeletion(c))
}

// oversights let states end before the program sees them.
func (a *analysis) oversights() {
	if a.last > 0 {
		for _, m := range a.of(a.last-1, user) {
			if m.done > 0 {
				a.add(Unobserved, "paused "+a.walk, a.last, m.before(kit.Pause(a.pace.beyond(a.t.took[a.last-1]))))
				break
			}
		}
	}
	for _, who := range []string{operator, user} {
		for _, m := range a.of(a.last, who) {
			if m.done > 0 && slices.Contains(a.t.watched, m.Of.Kind) && a.t.changesAgain(m.Of, m.At) {
				a.add(Unobserved, m.Write, 0, m.before(kit.Coalesce().Of(m.Of.Kind)))
			}
		}
	}
}

// byCluster hides what the controllers of Kubernetes do, such as that a Pod has ended, or lets the process miss it. Nothing
// can be aimed at their writes, so a plan begins at the last write before one.
func (a *analysis) byCluster() {
	known := map[string]bool{}
	for _, c := range a.t.changes {
		what := "cluster " + c.Verb + " " + c.Of.Kind
		if c.Step != a.last || c.Who != cluster || known[what] || excused(c.Of.Kind) || !slices.Contains(a.t.watched, c.Of.Kind) {
			continue
		}
		var begin moment
		for _, m := range a.moments {
			if m.done > 0 && m.Step == a.last && m.At <= c.At {
				begin = m
			}
		}
		if begin.done == 0 {
			continue
		}
		known[what] = true
		until := (c.At - begin.At).Round(time.Second) + time.Second
		a.add(Unobserved, what, 0, begin.after(kit.Crash(until+a.pace.over)))
		a.add(Stale, what, 0, begin.after(kit.Slow(until+a.pace.blind, until+a.pace.blind).Of(c.Of.Kind)))
		if a.t.changesAgain(c.Of, c.At) {
			a.add(Unobserved, "over "+what, 0, begin.after(kit.Coalesce().Of(c.Of.Kind)))
		}
	}
}

// patterns in the order in which they are tried.
var patterns = []Pattern{Intermediate, Stale, Unobserved, LostAnswer, Conflict}

// ordered returns plans in the order in which they are tried: the patterns take turns, stale states by hidden changes and
// by a server that lags behind two of them. Each begins with what is most different from what was tried: a plan comes the
// later the more of its class are before it in its walk, and the more walks before have its class.
func ordered(plans []plan) []plan {
	inWalk, walks, taken := map[string]int{}, map[string]int{}, map[string]int{}
	for i, p := range plans {
		here := p.Walk + " " + p.class
		if inWalk[here] == 0 {
			walks[p.class]++
		}
		inWalk[here]++
		plans[i].rank = inWalk[here] + walks[p.class] + p.late
	}
	slices.SortStableFunc(plans, func(a, b plan) int { return cmp.Compare(a.rank, b.rank) })
	for i, p := range plans {
		sort := fmt.Sprint(p.Pattern, p.travels())
		plans[i].turn = taken[sort]
		taken[sort]++
	}
	slices.SortStableFunc(plans, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(slices.Index(patterns, a.Pattern), slices.Index(patterns, b.Pattern)))
	})
	return plans
}
