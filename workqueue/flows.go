// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "math"

// FairBy has the flows of keys take turns: of one priority each flow that has ready keys has its turn before any has its next,
// so that no flow waits for a flood of another's keys. flow names the flow of a key, such as its namespace, its tenant or its
// cluster: the same key's always the same, "" for keys of no flow in particular, which are one too. It is called outside the
// queue's lock by whoever adds a key, must not block, and should not allocate. Keys that the queue knows by then stay in no
// flow, so call FairBy before the first is added. Up to 65,535 flows are told apart at a time; keys of more are as those of "".
// A nil flow does nothing.
func (q *Queue[K]) FairBy(flow func(key K) string) {
	if flow != nil {
		q.flow.Store(&flow)
	}
}

func (q *Queue[K]) flowOf(key K) string {
	if flow := q.flow.Load(); flow != nil {
		return (*flow)(key)
	}
	return ""
}

// mostFlows is how many flows are told apart, the nameless one among them.
const mostFlows = math.MaxUint16 + 1

// flows numbers the flows of which the queue knows keys. Number 0 is the nameless one, which also takes the keys of those that
// no number is left for.
type flows struct {
	all    []flow
	names  map[string]uint16
	unused []uint16
}

type flow struct {
	name  string
	keys  int    // entries that name it
	lines number // the first of its lines; see order
}

func newFlows() flows { return flows{all: make([]flow, 1), names: map[string]uint16{}} }

// join returns the number of the flow called name and counts a key of it.
func (f *flows) join(name string) uint16 {
	n, known := f.names[name]
	if !known {
		if n = f.vacant(); n == 0 {
			return 0
		}
		f.names[name] = n
		f.all[n].name = name
	}
	f.all[n].keys++
	return n
}

// vacant returns a number that no flow has, or 0 if none is left.
func (f *flows) vacant() (n uint16) {
	if last := len(f.unused) - 1; last >= 0 {
		n, f.unused = f.unused[last], f.unused[:last]
		return n
	}
	if len(f.all) == mostFlows {
		return 0
	}
	f.all = append(f.all, flow{})
	return uint16(len(f.all) - 1)
}

// leave says that a key of flow n is forgotten. After the last key of all flows their room is given back.
func (f *flows) leave(n uint16) {
	x := &f.all[n]
	if x.keys--; x.keys > 0 {
		return
	}
	delete(f.names, x.name)
	*x = flow{}
	f.unused = append(f.unused, n)
	if len(f.names) == 0 && cap(f.all) > keptLines {
		*f = flows{all: append(make([]flow, 0, 1), f.all[0]), names: map[string]uint16{}}
	}
}

// name of flow n.
func (f *flows) name(n uint16) string { return f.all[n].name }
