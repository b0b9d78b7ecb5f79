// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "math"

func (q *Queue[K]) flowOf(key K) string {
	if q.flow != nil {
		return q.flow(key)
	}
	return ""
}

// mostFlows is how many flows are distinguished, including the nameless one.
const mostFlows = math.MaxUint16 + 1

// flows numbers the flows of known keys. Number 0 is the nameless one, which also has the keys of flows without a number.
type flows struct {
	all    []flow
	names  map[string]uint16
	unused []uint16
}

type flow struct {
	name  string
	keys  int    // entries in the flow
	lines number // the first of its lines; see order
}

func newFlows() flows { return flows{all: make([]flow, 1), names: map[string]uint16{}} }

// join returns the number of the flow called name and counts a key in it.
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

// vacant returns an unused number, or 0 if there is none.
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

// leave removes a forgotten key from flow n. After the last key of all flows their memory is freed.
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

func (f *flows) name(n uint16) string { return f.all[n].name }
