// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// turns is a simple model of order: maps and slices with linear searches. It also compares how long each key waits with the
// bound of W8.
type turns struct {
	lines  map[int8]map[string][]int
	rings  map[int8][]string
	served map[int8]int
	handed int
	waits  map[int]*wait
}

// wait counts what a ready key has seen since it became ready or was raised.
type wait struct {
	priority int8
	place    int // in its line
	passed   int // hand-outs of others
	flows    int // the most lines of its priority
	levels   int // the most priorities
}

// bound is that of W8: how many hand-outs of others may pass.
func (w *wait) bound() int {
	if w.levels == 1 {
		return w.place*w.flows - 1
	}
	return w.place*w.flows*(patience+w.levels) - 1
}

func newTurns() *turns {
	return &turns{lines: map[int8]map[string][]int{}, rings: map[int8][]string{}, served: map[int8]int{}, waits: map[int]*wait{}}
}

func (q *turns) push(key int, flow string, p int8) {
	if len(q.rings[p]) == 0 {
		q.served[p] = q.handed
		q.lines[p] = map[string][]int{}
	}
	if len(q.lines[p][flow]) == 0 {
		q.rings[p] = append(q.rings[p], flow)
	}
	q.lines[p][flow] = append(q.lines[p][flow], key)
	q.waits[key] = &wait{priority: p, place: len(q.lines[p][flow])}
	q.look()
}

func (q *turns) remove(key int, flow string, p int8) {
	line := q.lines[p][flow]
	i := slices.Index(line, key)
	q.lines[p][flow] = slices.Delete(slices.Clone(line), i, i+1)
	if len(line) == 1 {
		i := slices.Index(q.rings[p], flow)
		q.rings[p] = slices.Delete(slices.Clone(q.rings[p]), i, i+1)
	}
	delete(q.waits, key)
}

// look records how many lines and priorities there are.
func (q *turns) look() {
	levels := len(q.priorities())
	for _, w := range q.waits {
		w.flows = max(w.flows, len(q.rings[w.priority]))
		w.levels = max(w.levels, levels)
	}
}

// priorities returns the priorities with ready keys, highest first.
func (q *turns) priorities() (all []int8) {
	for p, ring := range q.rings {
		if len(ring) > 0 {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

func (q *turns) next() (key int, flow string, p int8, ok bool) {
	all := q.priorities()
	if len(all) == 0 {
		return 0, "", 0, false
	}
	p = all[0]
	longest := slices.MinFunc(all, func(a, b int8) int { return q.served[a] - q.served[b] }) // the first of equals
	if q.handed-q.served[longest] >= patience {
		p = longest
	}
	flow = q.rings[p][0]
	return q.lines[p][flow][0], flow, p, true
}

// turn removes the next key.
func (q *turns) turn() (int, bool) {
	key, flow, p, ok := q.next()
	if !ok {
		return 0, false
	}
	q.handed++
	q.served[p] = q.handed
	q.lines[p][flow] = q.lines[p][flow][1:]
	q.rings[p] = q.rings[p][1:]
	if len(q.lines[p][flow]) > 0 {
		q.rings[p] = append(slices.Clone(q.rings[p]), flow)
	}
	return key, true
}

func (q *turns) take(t *testing.T) (int, bool) {
	key, ok := q.turn()
	if !ok {
		return 0, false
	}
	w := q.waits[key]
	delete(q.waits, key)
	if w.passed > w.bound() {
		t.Fatalf("W8: %d hand-outs passed before key %d's, want %d at most: %+v", w.passed, key, w.bound(), w)
	}
	for _, w := range q.waits {
		w.passed++
	}
	return key, true
}

// inOrder returns the keys in the order in which they are taken if nothing else is added.
func (q *turns) inOrder() (keys []int) {
	c := &turns{lines: map[int8]map[string][]int{}, rings: maps.Clone(q.rings), served: maps.Clone(q.served), handed: q.handed}
	for p, lines := range q.lines {
		c.lines[p] = maps.Clone(lines)
	}
	for key, ok := c.turn(); ok; key, ok = c.turn() {
		keys = append(keys, key)
	}
	return keys
}

// checkOrder compares the lines of s with each other and with the model.
func (m *model) checkOrder(t *testing.T, s *state[int]) {
	t.Helper()
	o, used, again := s.order, 0, map[int8]int{}
	for key := range m.dirty {
		if m.held[key] {
			again[m.priority[key]]++
		}
	}
	for i, l := range o.levels {
		if i > 0 && o.levels[i-1].priority <= l.priority {
			t.Fatalf("priorities are in the order %+v, want the highest first", o.levels)
		}
		ready, prev := 0, number(0)
		for n := l.first; n != 0; n = o.lines[n].next {
			x := o.lines[n]
			if x.prev != prev || x.priority != l.priority || o.find(x.flow, x.priority) != n || x.len == 0 {
				t.Fatalf("line %d of priority %d is %+v behind %d", n, l.priority, x, prev)
			}
			ready += len(walk(t, s, x.list))
			prev = n
			used++
		}
		if l.last != prev || l.ready != ready || l.again != again[l.priority] || used > len(o.lines) {
			t.Fatalf("priority %+v has %d ready keys in lines that end with %d, and %d held and dirty ones", l, ready, prev, again[l.priority])
		}
	}
	for n := o.free; n != 0; n = o.lines[n].next {
		used++
	}
	if used != len(o.lines)-1 {
		t.Fatalf("W9: %d lines are used or free, want %d: a line leaks", used, len(o.lines)-1)
	}
	checkFlows(t, s)
}

func checkFlows(t *testing.T, s *state[int]) {
	t.Helper()
	keys := map[uint16]int{}
	for n := number(1); n < s.high; n++ {
		if e := s.at(n); e.is(used) && e.flow != 0 {
			keys[e.flow]++
		}
	}
	f := &s.order.flows
	if len(f.names) != len(keys) || len(f.all) != len(keys)+len(f.unused)+1 {
		t.Fatalf("W9: %d flows have names, %d are unused, of %d; want %d in use", len(f.names), len(f.unused), len(f.all), len(keys))
	}
	for name, n := range f.names {
		if f.name(n) != name || f.all[n].keys != keys[n] {
			t.Fatalf("W9: flow %q is number %d, which has name %q and %d keys, want %d", name, n, f.name(n), f.all[n].keys, keys[n])
		}
	}
}

// TestOrder_NoKeyIsOvertakenForEver_W8 floods every priority and flow at once and never lets the queue run empty: the model
// compares each hand-out with the bound.
func TestOrder_NoKeyIsOvertakenForEver_W8(t *testing.T) {
	for seed := range uint64(16) {
		random := rand.New(rand.NewPCG(seed, 8))
		s, m := &state[int]{}, newModel(seed%2 == 0)
		priorities := 1 + int(seed%15)
		rare := 0
		for now := range int64(2000) {
			for range 1 + random.IntN(2) {
				// Higher priorities have more keys, and some keys are raised.
				p := int8(priorities - 1 - int(random.ExpFloat64()*2)%priorities)
				add(s, m, hashes[0], random.IntN(1000), p, now)
			}
			if now%100 == 0 {
				rare++
				add(s, m, hashes[0], 10_000+rare, -128, now)
			}
			if key, ok := take(t, s, m, now); ok {
				s.done(s.find(key, hashes[0](key)), now)
				m.done(key, now)
			}
		}
		m.check(t, s, hashes[0])
	}
}

// The bound is reached: it is tight.
func TestOrder_LowestPriorityHasItsShare_W8(t *testing.T) {
	s, m := &state[int]{}, newModel(false)
	add(s, m, hashes[0], 1, -100, 0)
	for key := range 100 {
		add(s, m, hashes[0], 100+key, 0, 0)
	}
	for passed := range 100 {
		if key, _ := take(t, s, m, 0); key != 1 {
			continue
		}
		if passed != patience {
			t.Errorf("%d urgent keys passed the one of low priority, want %d", passed, patience)
		}
		return
	}
	t.Error("the key of low priority waits for all urgent ones")
}

func TestOrder_FlowsTakeTurns_W8(t *testing.T) {
	s := &state[int]{}
	for key := range 1000 {
		s.add(key, hashes[0](key), addParams{flow: "flood"})
	}
	s.add(5000, hashes[0](5000), addParams{flow: "calm"})
	s.add(5001, hashes[0](5001), addParams{})
	var h hold[int]
	var got []int
	for range 5 {
		s.take(&h, 0)
		got = append(got, h.key)
	}
	if want := []int{0, 5000, 5001, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("keys %v are handed out first, want %v: a flow waits for another's flood", got, want)
	}
}

func TestFlows_AreToldApartUpToTheirNumber_W9(t *testing.T) {
	s, m := &state[int]{}, newModel(false)
	const many = mostFlows + 10
	for key := range many {
		s.add(key, hashes[0](key), addParams{flow: "flow-" + strconv.Itoa(key)})
	}
	if got := len(s.order.flows.names); got != mostFlows-1 {
		t.Errorf("%d flows are told apart, want %d", got, mostFlows-1)
	}
	var h hold[int]
	for range many {
		s.take(&h, 0)
		s.done(h.n, 0)
	}
	m.check(t, s, hashes[0])
	if o := s.order; cap(o.flows.all) > keptLines || cap(o.lines) > keptLines {
		t.Errorf("W9: room for %d flows and %d lines is kept when no key is left", cap(o.flows.all), cap(o.lines))
	}
}
