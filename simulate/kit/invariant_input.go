// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// effects attributes changes of objects to reconciles.
type effects struct {
	runs map[int]line // the reconciles of requests
}

func newEffects() effects { return effects{map[int]line{}} }

// take returns the reconcile that has made a change; ok: e is one, of a reconcile.
func (f effects) take(e Event) (by line, ok bool) {
	switch {
	case e.What == Asked && e.Run != "":
		controller, key, _ := strings.Cut(e.Run, " ")
		f.runs[e.Request] = line{e.Who, controller, key}
	case e.What == Changed:
		by, ok = f.runs[e.Request]
	}
	return by, ok
}

const (
	// unlike is how many reconciles in a row must each have changed one field, without a
	// change by others, for it to be a finding; unlikeAtRest how many that the kit called.
	unlike       = 10
	unlikeAtRest = 3
)

// outputFollowsInput (V27): reconciles of a key with equal inputs write equal objects.
// Inputs are equal if nothing changes between reconciles except by them. A finite number
// of steps that each lead to the next is right; the same field changes in each of them,
// without an end, if the output depends on a random number, the time, or the order of a
// map. A key with a timer may measure time.
func outputFollowsInput(h *History) (out []Violation) {
	type streak struct {
		of          object
		fields      []string
		runs, calls int
		others      int // changes by others, at the begin of the last reconcile
	}
	made, all, own := newEffects(), 0, map[line]int{}
	streaks, called, reported := map[line]*streak{}, map[line]bool{}, map[line]bool{}
	changes := map[line]map[object][]string{} // of the running reconcile
	for i, e := range h.Events {
		l := lineOf(e)
		by, ofRun := made.take(e)
		switch {
		case e.What == Changed && !h.renews(e) && !strings.HasPrefix(e.Kind, "Event"):
			all++
			if !ofRun {
				continue
			}
			own[by]++
			if changes[by] != nil && e.Name == "updated" && e.Text != "" {
				changes[by][object{e.Kind, e.Key}] = strings.Split(e.Text, ", ")
			}
		case e.What == Called:
			called[l] = true
		case e.What == Begun:
			changes[l] = map[object][]string{}
			if s := streaks[l]; s != nil && s.others != all-own[l] {
				s.runs = 0
				s.others = all - own[l]
			}
		case e.What == Ended:
			s := streaks[l]
			was := called[l]
			called[l] = false
			if e.After > 0 || len(changes[l]) == 0 {
				delete(streaks, l)
				continue
			}
			if s == nil || len(common(s.fields, changes[l][s.of])) == 0 {
				s = &streak{others: all - own[l]}
				s.of = firstOf(changes[l])
				s.fields = changes[l][s.of]
				streaks[l] = s
			}
			s.fields = common(s.fields, changes[l][s.of])
			s.runs++
			if s.calls++; !was {
				s.calls = 0
			}
			if (s.runs >= unlike || s.calls >= unlikeAtRest) && !reported[l] {
				reported[l] = true
				out = append(out, violated(i, "%s writes other values into %s of %s %s each time that it runs, although nothing else has changed: "+
					"its output differs for equal inputs. Keep what is random, such as a password, once it is written; sort what comes from a map; do not write the time",
					l, strings.Join(s.fields, ", "), s.of.kind, s.of.key))
			}
		}
	}
	return out
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(f string) bool { return !slices.Contains(b, f) })
}

func firstOf(changes map[object][]string) (first object) {
	for o := range changes {
		if first == (object{}) || o.kind+" "+o.key < first.kind+" "+first.key {
			first = o
		}
	}
	return first
}

// eventsLeadToTheEnd (V26): a key whose reconcile has set a timer has no work left before
// its time. At rest it is called early: if it then writes, and no more in its next run, it was
// not the time that was missing, but the event of what others have changed since its last
// reconcile. A reconcile that calls a Service may poll it.
func eventsLeadToTheEnd(h *History) (out []Violation) {
	type early struct {
		event, since int // the call, and the begin of the reconcile before
		due          time.Duration
		wrote        string
		polls        bool
	}
	made := newEffects()
	begun, due, running, found := map[line]int{}, map[line]time.Duration{}, map[line]*early{}, map[line]*early{}
	for i, e := range h.Events {
		l := lineOf(e)
		by, ofRun := made.take(e)
		switch {
		case e.What == Called:
			if _, has := begun[l]; has && due[l] > e.At {
				running[l] = &early{event: i, since: begun[l], due: due[l]}
			}
		case e.What == Begun:
			begun[l] = i
			if running[l] == nil {
				running[l] = &early{}
			}
		case e.What == Changed && ofRun && running[by] != nil && running[by].wrote == "":
			running[by].wrote = e.Kind + " " + e.Key
		case e.What == Made || e.What == Asked && calls(e.Name) || e.What == Asked && e.Name == "GET":
			if by, known := made.runs[e.Request]; known && running[by] != nil {
				running[by].polls = true
			}
		case e.What == Ended:
			due[l] = 0
			if e.After > 0 {
				due[l] = e.At + e.After
			}
			r := running[l]
			delete(running, l)
			first := found[l]
			switch {
			case r == nil || retried(e.Name):
			case first == nil && r.wrote != "" && !r.polls && r.due > 0:
				found[l] = r
			case first != nil && r.wrote == "":
				if v, ok := h.forgotten(l, first.event, first.since, first.due, first.wrote); ok {
					out = append(out, v)
				}
				delete(found, l)
			case first != nil:
				delete(found, l) // it writes each time
			}
		}
	}
	return out
}

// forgotten describes a key that only its timer would have brought to its end; ok: others
// have changed something since its last reconcile, which it has not heard of.
func (h *History) forgotten(l line, at, since int, due time.Duration, wrote string) (v Violation, ok bool) {
	if slices.Contains(h.Timed, l.controller) {
		return v, false
	}
	made, changed := newEffects(), []string{}
	for i, e := range h.Events[:at] {
		by, ofRun := made.take(e)
		if i < since || e.What != Changed || ofRun && by == l || h.renews(e) || strings.HasPrefix(e.Kind, "Event") || e.Who == "" {
			continue
		}
		changed = append(changed, fmt.Sprintf("%s %s (%s, at %s)", e.Kind, e.Key, e.Who, e.At))
	}
	if len(changed) == 0 {
		return v, false
	}
	if len(changed) > explained {
		changed = append(changed[:explained], fmt.Sprintf("and %d more", len(changed)-explained))
	}
	return violated(at, "%s: only a timer would have brought the key to its end. Called %s before its time, its reconcile writes %s, and then nothing more. "+
		"No event has called for it, and since its last reconcile began at %s these have changed: %s. Watch what the reconcile reads; "+
		"if it polls what no event tells, name the controller in Config.Timed",
		l, due-h.Events[at].At, wrote, h.Events[since].At, strings.Join(changed, "; ")), true
}
