// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"slices"
)

const (
	patience  = 8    // hand-outs that a priority with ready keys is passed over before it may go first
	keptLines = 1024 // lines; room for these is never freed
)

// order determines the next ready key if keys have priorities or flows. The ready keys of one priority and one flow form a
// line, first in first out. Each hand-out
//
//   - goes to the highest priority with a line; but if any was passed over patience times since its last turn, to the one
//     passed over most often, and among equals to the highest;
//   - and within the priority to the line at the head of the ring, which then moves to the tail, where new lines go too.
//
// The bound of W8 follows. Let L be the most priorities that have lines at one time, and F the most lines of a priority. A
// priority that has been passed over patience times is overtaken only by those that have waited as long, each once, since a
// turn resets their wait and all waits grow alike: after at most patience + L - 1 hand-outs it has its turn. A line has its
// turn after at most F turns of its priority, since later lines are behind it. The p-th key of a line needs p of the line's
// turns. So its hand-out is among the next p*F*(patience+L), and with one priority among the next p*F.
type order struct {
	levels []level // priorities ever used, highest first
	lines  []line  // by number; 0 is none
	free   number  // unused lines, linked by next
	ready  int
	handed uint64 // hand-outs so far
	flows  flows
}

type level struct {
	priority    int8
	first, last number // ring of its lines
	ready       int
	again       int    // held and dirty keys of this priority
	served      uint64 // hand-outs at its last turn, or when it got a line
}

type line struct {
	list
	next, prev number // in the ring
	beside     number // next line of the flow
	flow       uint16
	priority   int8
}

func newOrder() *order { return &order{lines: make([]line, 1), flows: newFlows()} }

// level returns the level of priority p. The pointer is valid until a new priority is added.
func (o *order) level(p int8) *level {
	i, found := slices.BinarySearchFunc(o.levels, p, func(l level, p int8) int { return cmp.Compare(p, l.priority) })
	if !found {
		o.levels = slices.Insert(o.levels, i, level{priority: p})
	}
	return &o.levels[i]
}

// find returns the line of flow and priority, or 0.
func (o *order) find(flow uint16, p int8) number {
	n := o.flows.all[flow].lines
	for n != 0 && o.lines[n].priority != p {
		n = o.lines[n].beside
	}
	return n
}

// join counts a key that becomes ready and returns its list.
func (o *order) join(flow uint16, p int8) *list {
	l := o.level(p)
	if l.ready == 0 {
		l.served = o.handed
	}
	l.ready++
	o.ready++
	n := o.find(flow, p)
	if n == 0 {
		n = o.open(flow, p, l)
	}
	return &o.lines[n].list
}

// leave counts a key removed from its line, and closes the line if it is empty.
func (o *order) leave(n number) {
	l := o.level(o.lines[n].priority)
	l.ready--
	o.ready--
	if o.lines[n].len == 0 {
		o.unlink(l, n)
		o.close(n)
	}
}

// next returns the line with the next turn, or 0.
func (o *order) next() number {
	var top, longest *level
	for i := range o.levels {
		l := &o.levels[i]
		if l.ready == 0 {
			continue
		}
		if top == nil {
			top, longest = l, l
		}
		if l.served < longest.served {
			longest = l
		}
	}
	switch {
	case top == nil:
		return 0
	case o.handed-longest.served >= patience:
		return longest.first
	}
	return top.first
}

// turned records that line n has had its turn. Its key is already removed.
func (o *order) turned(n number) {
	l := o.level(o.lines[n].priority)
	o.handed++
	l.served = o.handed
	if o.lines[n].len > 0 && l.first != l.last {
		o.unlink(l, n)
		o.link(l, n)
	}
	o.leave(n)
}

func (o *order) open(flow uint16, p int8, l *level) number {
	n := o.free
	if n == 0 {
		n = number(len(o.lines))
		o.lines = append(o.lines, line{})
	} else {
		o.free = o.lines[n].next
	}
	f := &o.flows.all[flow]
	o.lines[n] = line{flow: flow, priority: p, beside: f.lines}
	f.lines = n
	o.link(l, n)
	return n
}

// close frees line n, which is empty and in no ring.
func (o *order) close(n number) {
	at := &o.flows.all[o.lines[n].flow].lines
	for *at != n {
		at = &o.lines[*at].beside
	}
	*at = o.lines[n].beside
	o.lines[n] = line{next: o.free}
	o.free = n
	if o.ready == 0 && cap(o.lines) > keptLines {
		o.lines, o.free = make([]line, 1), 0
	}
}

func (o *order) link(l *level, n number) {
	o.lines[n].next, o.lines[n].prev = 0, l.last
	if l.last != 0 {
		o.lines[l.last].next = n
	} else {
		l.first = n
	}
	l.last = n
}

func (o *order) unlink(l *level, n number) {
	next, prev := o.lines[n].next, o.lines[n].prev
	if prev != 0 {
		o.lines[prev].next = next
	} else {
		l.first = next
	}
	if next != 0 {
		o.lines[next].prev = prev
	} else {
		l.last = prev
	}
}

// copy returns an order that can be played through without changing this one.
func (o *order) copy() *order {
	c := *o
	c.levels, c.lines = slices.Clone(o.levels), slices.Clone(o.lines)
	c.flows = flows{all: slices.Clone(o.flows.all)}
	return &c
}

// depths returns the numbers of each priority, nil if only priority 0 was used.
func (o *order) depths() []PriorityStats {
	if len(o.levels) == 0 || len(o.levels) == 1 && o.levels[0].priority == 0 {
		return nil
	}
	all := make([]PriorityStats, len(o.levels))
	for i, l := range o.levels {
		all[i] = PriorityStats{Priority: int(l.priority), Ready: l.ready, Dirty: l.again}
	}
	return all
}
