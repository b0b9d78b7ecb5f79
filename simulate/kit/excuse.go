// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"time"
)

// What a fault excuses, and nothing beyond it: doc.go has the table.

// is reports whether e is a fault of one of these verbs, or the end of one.
func (e Event) is(verbs ...Verb) bool {
	if e.What != Fault && e.What != Over {
		return false
	}
	for _, v := range verbs {
		if e.Name == string(v) || strings.HasPrefix(e.Name, string(v)+" ") {
			return true
		}
	}
	return false
}

// harms reports whether a fault touches requests, watches or all workers, and not
// one reconcile, one object or a clock alone.
func (e Event) harms() bool {
	return !e.is(panics, hang, stall, stop, reject, poison, huge, nasty, clockStep)
}

// harmed is the process that a fault happens to; empty: all, or the next life of one.
func (e Event) harmed() string {
	if e.Kind == "" && !e.is(timeTravel) {
		return e.Key
	}
	return ""
}

// hidden are the stores that can differ from every state there was, as a run goes
// on: the server has hidden something from their watches, or gone back in time.
type hidden struct {
	audited bool            // they find out, but nobody knows when
	lied    map[string]bool // kinds
	rewound map[store]bool  // known stores that follow a time that was undone
	stores  map[store]bool
}

func newHidden(h *History) hidden {
	return hidden{h.Audit > 0, map[string]bool{}, map[store]bool{}, map[store]bool{}}
}

// take follows e.
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

// from reports whether something is hidden from s.
func (d hidden) from(s store) bool { return d.lied[s.kind] || d.rewound[s] }

// wires are how much longer than usual what each process sends is on its way.
type wires map[string]wire

type wire struct {
	most    time.Duration // of the faults that last, and of those before them
	lasting int
	until   time.Duration // once none lasts: when the last thing held up has arrived
}

// take follows e.
func (d wires) take(e Event) {
	if !e.is(delay) {
		return
	}
	w := d[e.Key]
	if e.What == Fault {
		w.most = max(w.most, e.Delay)
		w.lasting++
	} else {
		w.lasting--
		w.until = e.At + w.most
	}
	d[e.Key] = w
}

// onTheWire is longer than anything that was sent takes to arrive when nothing holds it up.
const onTheWire = time.Millisecond

// carry reports whether what e asks for can have been sent before its process ended.
func (d wires) carry(e Event, ended time.Duration) bool {
	w, late := d[e.Who], e.At-ended-onTheWire
	return late <= 0 || late <= w.most && (w.lasting > 0 || e.At <= w.until+onTheWire)
}

// occupied is until when all workers of a process can be busy with what a fault has
// done to their requests, by process; "" is all of them.
type occupied map[string]time.Duration

// hardDeadline ends a reconcile whose request nobody answers; a little more is for
// the retries that have come together.
const hardDeadline = 11 * time.Minute

// take follows e.
func (o occupied) take(e Event) {
	if e.What == Fault && (e.harms() || e.is(hang) && e.After > isolation) {
		o[e.harmed()] = max(o[e.harmed()], e.At+e.After+hardDeadline)
	}
}

// since reports whether workers of who can have been busy after a time.
func (o occupied) since(who string, at time.Duration) bool { return max(o[""], o[who]) > at }
