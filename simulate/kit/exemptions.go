// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"strings"
	"time"
)

// What each fault excuses, as docs/invariants.md lists it, follows from the history.

// is reports whether e is the start or end of a fault with one of these verbs.
func (e Event) is(verbs ...Verb) bool {
	return (e.What == Fault || e.What == Over) && slices.ContainsFunc(verbs, func(v Verb) bool {
		return e.Name == string(v) || strings.HasPrefix(e.Name, string(v)+" ")
	})
}

// harms reports whether a fault affects requests, watches or all workers, not just one
// reconcile, one object or a clock.
func (e Event) harms() bool {
	return !e.is(panics, hang, stall, stop, reject, corrupt, huge, nasty, foreignWrite, clockStep)
}

// harmed returns the process that a fault affects; empty: all, or the next life of one.
func (e Event) harmed() string {
	if e.Kind == "" && !e.is(timeTravel) {
		return e.Key
	}
	return ""
}

// hidden tracks the stores that may differ from every past state: the server has hidden
// something from their watches, or gone back in time.
type hidden struct {
	audited bool            // informers audit, so they recover at some time
	lied    map[string]bool // kinds
	rewound map[store]bool  // known stores that follow a time that was undone
	stores  map[store]bool
}

func newHidden(h *History) hidden {
	return hidden{h.Audit > 0, map[string]bool{}, map[store]bool{}, map[store]bool{}}
}

func (d hidden) take(e Event) {
	switch {
	case e.What == Fault && e.is(dropEvent, reorder, coalesce):
		d.lied[e.Kind] = true
	case e.What == Fault && e.is(rewind):
		for s := range d.stores {
			d.rewound[s] = true
		}
	case e.What == Stored:
		d.stores[storeOf(e)] = true
	case e.What == Epoch:
		for s := range d.rewound {
			if s.who == e.Who && s.kind == e.Kind {
				delete(d.rewound, s)
			}
		}
	case e.What == Healed && !d.audited, e.What == Rest:
		clear(d.lied)
		clear(d.rewound)
	}
}

func (d hidden) from(s store) bool { return d.lied[s.kind] || d.rewound[s] }

// wires tracks the extra latency of what each process sends: what it has sent as it was paused arrives
// after the pause.
type wires map[string]wire

type wire struct {
	most    time.Duration // of the current faults, and earlier ones
	lasting int
	until   time.Duration // when the last delayed message has arrived, once no fault lasts
}

func (d wires) take(e Event) {
	if !e.is(delay, pause) {
		return
	}
	w := d[e.Key]
	switch {
	case e.What == Over && e.is(pause):
		w.lasting--
		w.until = max(w.until, e.At)
	case e.What == Fault && e.is(pause):
		w.most = max(w.most, e.After)
		w.lasting++
	case e.What == Fault:
		w.most = max(w.most, e.Delay)
		w.lasting++
	default:
		w.lasting--
		w.until = e.At + w.most
	}
	d[e.Key] = w
}

// onTheWire exceeds the latency of any message without a fault.
const onTheWire = time.Millisecond

// carry reports whether the request e can have been sent before its process ended.
func (d wires) carry(e Event, ended time.Duration) bool {
	w, late := d[e.Who], e.At-ended-onTheWire
	return late <= 0 || late <= w.most && (w.lasting > 0 || e.At <= w.until+onTheWire)
}

// occupied holds, by process, until when a fault of requests can keep all its workers
// busy; "" is all processes.
type occupied map[string]time.Duration

// hardDeadline is when a reconcile whose request is never answered ends, with a margin
// for retries that have accumulated.
const hardDeadline = 11 * time.Minute

func (o occupied) take(e Event) {
	if e.What == Fault && (e.harms() || e.is(hang) && e.After > isolation) {
		o[e.harmed()] = max(o[e.harmed()], e.At+e.After+hardDeadline)
	}
}

// since reports whether the workers of who can have been busy after a time.
func (o occupied) since(who string, at time.Duration) bool { return max(o[""], o[who]) > at }
