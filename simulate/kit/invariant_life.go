// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

func sorted(out []Violation) []Violation {
	slices.SortStableFunc(out, func(a, b Violation) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Text, b.Text)) })
	return out
}

// restIsRest (V7): the run comes to rest within its bounds, and from then on no process
// writes or reconciles, except because of timers, tickers and resyncs, for the Lease of
// the election, and for the last count of an Event that was repeated before. What a
// program of RunMain writes at rest can be because of its timers, which are not recorded.
func restIsRest(h *History) (out []Violation) {
	if i := h.last(Restless); i >= 0 {
		return []Violation{violated(i, "no rest within %v after the faults: %s", h.Bound, h.Events[i].Text)}
	}
	if i := h.last(Endless); i >= 0 {
		e := h.Events[i]
		return []Violation{violated(i, "no end of events: the run has %d after %v, which is Config.MaxEvents. Most often:\n%s", e.Count, e.At.Round(time.Millisecond), e.Text)}
	}
	rest, alive := h.atRest(), h.alive()
	if rest < 0 {
		return nil
	}
	end := len(h.Events)
	if finished := h.last(Finished); finished >= 0 {
		end = finished
	}
	timed, running, counts, mains := map[line]bool{}, map[string]int{}, lastCounts{}, h.mains()
	for i, e := range h.Events[:end] {
		l := lineOf(e)
		switch {
		case e.What == Ended:
			if timed[l] && i > rest {
				running[e.Who]--
			}
			timed[l] = e.After > 0
		case i < rest:
		case e.What == Enqueued && e.Quiet:
			timed[l] = true
		case e.What == Begun && !timed[l]:
			out = append(out, violated(i, "%s is reconciled at rest, and no timer says so", l))
		case e.What == Begun:
			running[e.Who]++
		case e.What == Changed && !h.renews(e) && alive[e.Who] && !mains[e.Who] && running[e.Who] == 0 && !counts.take(e, "updated"):
			out = append(out, violated(i, "%s writes %s %s at rest", e.Who, e.Kind, e.Key))
		}
	}
	return out
}

// onlyWhoMayWrites (V10): no write of a process is accepted after it has crashed or its
// manager has returned, except for writes on the wire; and at rest a process sends
// writes, even ones that change nothing, only from a reconcile, except to renew the
// Lease of the election and to complete the counts of Events. With leader election, the
// server accepts writes only from the process that the Lease names, except of unguarded
// kinds.
func onlyWhoMayWrites(h *History) (out []Violation) {
	ends, running := map[string]Event{}, map[string]int{} // the first end and the running reconciles, of each process
	rest, finished := h.atRest(), h.last(Finished)
	led, wire, counts, mains := newLeadership(h), wires{}, lastCounts{}, h.mains()
	for i, e := range h.Events {
		led.take(e)
		wire.take(e)
		end, over := ends[e.Who]
		_, started := running[e.Who]
		switch {
		case e.What == Started:
			running[e.Who] = 0
		case e.What == Begun:
			running[e.Who]++
		case e.What == Ended:
			running[e.Who]--
		case e.What == Crashed || e.What == Exited:
			if !over {
				ends[e.Who] = e
			}
		case led.forbids(e):
			out = append(out, violated(i, "%s writes %s %s, and the Lease is %s", e.Who, e.Kind, e.Key, led))
		case e.What != Asked || !writes(e.Name):
		case over && !wire.carry(e, end.At):
			out = append(out, violated(i, "%s has ended, and asks to %s %s %s", e.Who, e.Name, e.Kind, e.Key))
		case !over && started && !mains[e.Who] && !h.renews(e) && running[e.Who] == 0 && rest >= 0 && i > rest && i < finished && !counts.take(e, "patch"):
			out = append(out, violated(i, "%s asks to %s %s %s at rest, and reconciles nothing", e.Who, e.Name, e.Kind, e.Key))
		}
	}
	return out
}

// lastCounts are the Events that have been counted at rest. A recorder writes the last
// count of a series once, when the event has not been repeated for minutes.
type lastCounts map[string]bool

// take reports whether e is the last count of an Event, written with verb.
func (c lastCounts) take(e Event, verb string) bool {
	if e.Name != verb || e.Kind != "Event" && e.Kind != "Event.events.k8s.io" || c[e.Key] {
		return false
	}
	c[e.Key] = true
	return true
}

// stopsClean (V11): after a manager's Run has returned, nothing of it reconciles, sends
// requests, except for what was on the wire, or logs.
func stopsClean(h *History) (out []Violation) {
	ended, wire := map[string]time.Duration{}, wires{}
	for i, e := range h.Events {
		wire.take(e)
		switch e.What {
		case Exited:
			ended[e.Who] = e.At
		case Asked, Begun, Ended, Delivered, Stored, Logged:
			if at, over := ended[e.Who]; over && !(e.What == Asked && wire.carry(e, at)) {
				out = append(out, violated(i, "%s has returned from its Run, and then: %s", e.Who, e))
			}
		}
	}
	return out
}

// nothingIsLeft (V12): a manager that has returned has closed its connections. The
// bubble itself ensures that no goroutine is left.
func nothingIsLeft(h *History) (out []Violation) {
	for i, e := range h.Events {
		if e.What == Leftover {
			out = append(out, violated(i, "%s has returned from its Run and left %d %s", e.Who, e.Count, e.Name))
		}
	}
	return out
}

// memoryIsBounded (V13): at rest backlogs and queues are empty, and the stores hold no
// more than the live objects. Counted has the number of elements, and Text their name.
func memoryIsBounded(h *History) (out []Violation) {
	live := map[object]state{}
	for i, e := range h.Events {
		switch e.What {
		case Changed:
			apply(live, e)
		case Counted:
			n := 0
			for o := range live {
				if e.Kind == "" || o.kind == e.Kind {
					n++
				}
			}
			if most := e.Quiet; e.Count > 0 && (most || e.Count > n) {
				out = append(out, violated(i, "%s holds %d %s at rest, and there are %d objects", e.Who, e.Count, e.Name, n))
			}
		}
	}
	return out
}

// listsAreBounded (V14): a process lists a kind once, and again for each fault that can
// have ended its watch or the list: of the server, of the kind or of the process,
// including earlier ones, because some take effect at the next list. Kinds converted by
// a webhook depend on every process that serves it, and a changed CRD ends the watches
// of its kinds. Audits come on top, at their interval, and the list by which a new leader
// learns what its predecessor may have written. A program of RunMain may list as it likes.
func listsAreBounded(h *History) (out []Violation) {
	if h.Sharing != nil {
		return nil // each shard that comes to a process is listed
	}
	led := newLeadership(h)
	type about struct{ who, kind string }
	lists, faults, started := map[about]int{}, map[about]int{}, map[string]time.Duration{}
	settles := map[about]int{} // deletions of a collection, whose effect a list may have to settle
	mains := h.mains()
	defined, all := map[string]int{}, 0 // changes of a group's CRDs; faults of the server and of all processes
	for i, e := range h.Events {
		led.take(e)
		switch {
		case e.What == Fault || e.What == Over:
			if e.harms() {
				faults[about{e.harmed(), e.Kind}]++
				if e.Kind == "" {
					all++
				}
			}
		case e.What == Changed && e.Name == "updated" && e.Kind == definitions && len(started) > 0:
			_, group, _ := strings.Cut(e.Key, ".")
			defined[group]++
		case e.What == Started:
			started[e.Who] = e.At
		case e.What == Asked && e.Name == "deletecollection":
			settles[about{e.Who, e.Kind}]++
		case e.What == Asked && e.Kind != "" && e.Who != "user" && !mains[e.Who] && lists1st(e):
			a := about{e.Who, e.Kind}
			met := faults[about{}] + faults[about{kind: e.Kind}] + faults[about{who: e.Who}]
			if slices.Contains(h.Converted, e.Kind) {
				met = all + faults[about{kind: e.Kind}]
			}
			_, group, _ := strings.Cut(e.Kind, ".")
			most := 1 + perFault*met + defined[group] + settles[a]
			if since, replica := led.since[e.Who]; replica && since >= 0 {
				most++
			}
			if h.Audit > 0 {
				most += 1 + int(2*(e.At-started[e.Who])/h.Audit)
			}
			if lists[a]++; lists[a] > most {
				out = append(out, violated(i, "%s asks for list %d of %s, after %d faults that it can be for", e.Who, lists[a], e.Kind, met))
			}
		}
	}
	return out
}

const definitions = "CustomResourceDefinition.apiextensions.k8s.io"

// perFault is how many lists of a kind one fault may cost: lists are retried with
// backoff while it lasts.
const perFault = 8

// lists1st reports whether e requests the first page of a list. The list of one key, which
// settles a write of unknown effect, is none.
func lists1st(e Event) bool {
	switch e.Name {
	case "list":
		return !strings.Contains(e.Text, "continue=") && !strings.Contains(e.Text, "fieldSelector=metadata.name")
	case "watch":
		return strings.Contains(e.Text, "sendInitialEvents=true")
	}
	return false
}

// harmStaysAtItsKey (V15): while reconciles panic or hang briefly, objects are corrupted
// or huge and clocks wrong, each addition of another key is taken up within its bound.
// Any other fault can block all workers until the hard deadline.
func harmStaysAtItsKey(h *History) (out []Violation) {
	owed := map[line]int{}
	failing := map[line]bool{}
	busy, led := occupied{}, newLeadership(h)
	for i, e := range h.Events {
		l := lineOf(e)
		busy.take(e)
		led.take(e)
		switch e.What {
		case Enqueued:
			if _, ok := owed[l]; !ok && !failing[l] {
				owed[l] = i
			}
		case Canceled:
			delete(owed, l)
		case Begun:
			if at, ok := owed[l]; ok {
				from := max(h.Events[at].At, led.since[e.Who]) // before that it was a standby
				if e.At-from > isolation && !busy.since(e.Who, from) {
					out = append(out, violated(i, "%s was taken up %v after it was added, while only other keys were harmed", l, e.At-from))
				}
			}
			delete(owed, l)
			failing[l] = true
		case Ended:
			failing[l] = retried(e.Name)
		}
	}
	return out
}

// isolation is how long a key may wait while others are affected.
const isolation = 10 * time.Second

// whatIsWantedLasts (V17): the checks of Settled hold at rest and after only time has
// passed, and those of Never always.
func whatIsWantedLasts(h *History) (out []Violation) {
	for i, e := range h.Events {
		if e.What == Check && e.Text != "" {
			out = append(out, violated(i, "%s: %s", e.Name, e.Text))
		}
	}
	return out
}
