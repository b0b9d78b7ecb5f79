// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"maps"
	"strings"
	"sync"
	"time"
)

// line identifies a key of a controller in one process.
type line struct{ who, controller, key string }

func lineOf(e Event) line { return line{e.Who, e.Kind, e.Key} }

func (l line) String() string { return l.who + "'s " + l.controller + " " + l.key }

// everyChangeIsReconciled (V4): each event that a source's handler receives is mapped
// to keys; each key added for it is reconciled by a run that begins later, with a store
// that has the event, unless the process waits to be elected; and at rest the last
// event of an object that each handler received equals the content of its store. A
// process that ends drops its pending work: its successor lists everything.
func everyChangeIsReconciled(h *History) (out []Violation) {
	rest, alive := h.atRest(), h.alive()
	if rest < 0 {
		return nil // see V7
	}
	owed := map[line]int{}        // added and not begun since, by event index
	unmapped := map[mapping]int{} // delivered and not mapped yet, by event index
	last := map[handler]int{}
	stores := caches{}
	led, begun := newLeadership(h), map[worker]bool{}
	for i, e := range h.Events[:rest] {
		led.take(e)
		switch e.What {
		case Stored:
			stores.take(e, i)
		case Delivered:
			unmapped[mapping{e.Who, e.Name + " " + e.Key}] = i
			last[handler{e.Who, e.Kind, e.Name, e.Key, e.Count}] = i
			if !stores.shows(e) {
				out = append(out, violated(i, "%s received %s %s at version %d, which no store of its process has yet", e.Name, e.Kind, e.Key, e.Version))
			}
		case Evaluated:
			delete(unmapped, mapping{e.Who, "source " + e.Name + " " + e.Key})
		case Enqueued:
			if _, ok := owed[lineOf(e)]; !ok {
				owed[lineOf(e)] = i
			}
		case Canceled:
			delete(owed, lineOf(e))
		case Begun:
			delete(owed, lineOf(e))
			begun[worker{e.Who, e.Kind}] = true
		case Crashed, Exited:
			maps.DeleteFunc(unmapped, func(m mapping, _ int) bool { return m.who == e.Who })
		}
	}
	for l, i := range owed {
		if alive[l.who] && (begun[worker{l.who, l.controller}] || led.leader == l.who) {
			out = append(out, violated(i, "%s was added and never reconciled after it", l))
		}
	}
	for m, i := range unmapped {
		if alive[m.who] && strings.HasPrefix(m.what, "source ") {
			out = append(out, violated(i, "%s received %s and never decided on it", m.who, m.what))
		}
	}
	for of, i := range last {
		if e := h.Events[i]; alive[of.who] && !stores.holds(e) && !h.renews(e) {
			out = append(out, violated(i, "%s of %s was last told of %s %s at version %d, and its store holds another", of.name, of.who, of.kind, of.key, e.Version))
		}
	}
	return sorted(out)
}

type worker struct{ who, controller string }

// mapping is an object that a source of a process maps to keys.
type mapping struct{ who, what string }

// handler is a handler of a process, and an object that it receives.
type handler struct {
	who, kind, name, key string
	id                   int
}

// shows reports whether a store of e's process and kind has had e.
func (c caches) shows(e Event) bool {
	for s, held := range c {
		if s.who == e.Who && s.kind == e.Kind && (e.Version == 0 || held.ever[e.Key] >= e.Version || held.everMost >= e.Version) {
			return true
		}
	}
	return false
}

func (c caches) holds(e Event) bool {
	for s, held := range c {
		if s.who == e.Who && s.kind == e.Kind && held.objects[e.Key].version == e.Version {
			return true
		}
	}
	return false
}

// doneIsDone (V24): a controller that omits its own events calls for another reconcile if it has
// stopped before its work is done. The controller finds it: see package internal/ownevents.
func doneIsDone(h *History) (out []Violation) {
	restless := sync.OnceValue(func() map[line]bool { // few histories have one
		lines := map[line]bool{}
		for _, v := range outputFollowsInput(h) {
			lines[lineOf(h.Events[v.Event])] = true
		}
		return lines
	})
	for i, e := range h.Events {
		if e.What == Unfinished && !restless()[lineOf(e)] {
			out = append(out, violated(i, "%s returned after writing %s, and nothing will call it again, "+
				"as Options.OmitOwnEvents is set; called once more, it writes %s", lineOf(e), e.Name, e.Text))
		}
	}
	return out
}

// oneWorkerPerKey (V5): no key of a controller is reconciled twice at the same time in
// one process. A crashed process is not observed.
func oneWorkerPerKey(h *History) (out []Violation) {
	running := map[line]bool{}
	for i, e := range h.Events {
		switch e.What {
		case Begun:
			if running[lineOf(e)] {
				out = append(out, violated(i, "%s is reconciled while it is", lineOf(e)))
			}
			running[lineOf(e)] = true
		case Ended:
			running[lineOf(e)] = false
		}
	}
	return out
}

// queueKeepsItsWord (V6): each reconcile has a reason, an addition or an expired wait
// since the key was last taken up; and an addition while a key is held leads to another
// reconcile. V4 checks that no addition is lost; V6 that none is spurious.
func queueKeepsItsWord(h *History) (out []Violation) {
	reasons, timers := map[line]int{}, map[line]bool{} // a timer lasts until the end of the next run decides again
	for i, e := range h.Events {
		switch e.What {
		case Enqueued:
			reasons[lineOf(e)]++
		case Ended:
			if timers[lineOf(e)] {
				reasons[lineOf(e)]++ // it may have expired meanwhile
			}
			timers[lineOf(e)] = e.After > 0 || retried(e.Name)
		case Taken:
			switch l := lineOf(e); {
			case reasons[l] > 0:
				reasons[l] = 0
			case timers[l]:
				timers[l] = false
			default:
				out = append(out, violated(i, "%s is reconciled without having been added", l))
			}
		}
	}
	return out
}

// timersKeepTime (V8): a key with a requeue time runs at that time, not earlier unless
// it is added meanwhile, and at most a slack later, unless a fault occupies all
// workers. A backoff may end during a run that began before it, and lead to another.
func timersKeepTime(h *History) (out []Violation) {
	type timer struct {
		due   time.Duration
		event int
	}
	const slack = time.Second
	timers := map[line]timer{}
	added, taken, since := map[line]bool{}, map[line]bool{}, map[line]bool{} // since: after it was taken up
	backsOff, early := map[line]bool{}, map[line]bool{}                      // early: the run before may have overtaken a backoff
	healed, ok := h.healedAt()
	rest, alive := h.atRest(), h.alive()
	late := func(l line, t timer, now time.Duration) bool {
		return ok && t.due > healed && now > t.due+slack && alive[l.who] && rest >= 0 && now > h.Events[rest].At
	}
	for i, e := range h.Events {
		l := lineOf(e)
		switch e.What {
		case Enqueued:
			added[l], since[l] = true, taken[l]
		case Canceled:
			delete(timers, l)
			added[l], early[l], backsOff[l] = false, false, false
		case Taken:
			taken[l] = true
		case Begun:
			if t, waits := timers[l]; waits && e.At < t.due && !added[l] && !early[l] {
				out = append(out, violated(i, "%s runs %v early without having been added", l, t.due-e.At))
			} else if waits && late(l, t, e.At) && !added[l] {
				out = append(out, violated(i, "%s runs %v after its time", l, e.At-t.due))
			}
			delete(timers, l)
			added[l], taken[l], since[l] = since[l], false, false
			early[l], backsOff[l] = backsOff[l], false
		case Ended:
			backsOff[l] = retried(e.Name)
			if e.After > 0 {
				timers[l] = timer{e.At + e.After, i}
			}
		}
	}
	if end := h.last(Finished); end >= 0 {
		for l, t := range timers {
			if late(l, t, h.Events[end].At) {
				out = append(out, violated(t.event, "%s was to run again after %v and has not", l, h.Events[t.event].After))
			}
		}
	}
	return sorted(out)
}
