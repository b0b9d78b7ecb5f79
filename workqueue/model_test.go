// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// model is a simple model of state: maps and slices with linear searches.
type model struct {
	dirty, held map[int]bool
	failures    map[int]int
	due         map[int]int64
	priority    map[int]int8
	ready       *turns
	fair, shut  bool

	asked, answering map[int]int64 // since when
	answered         []int64
}

func newModel(fair bool) *model {
	return &model{
		dirty: map[int]bool{}, held: map[int]bool{}, failures: map[int]int{}, due: map[int]int64{},
		priority: map[int]int8{}, ready: newTurns(), fair: fair,
		asked: map[int]int64{}, answering: map[int]int64{},
	}
}

// params returns the parameters of an add of key.
func (m *model) params(key int, priority int8) addParams {
	w := addParams{priority: priority}
	if m.fair && key%5 > 0 {
		w.flow = string(rune('a' + key%5))
	}
	return w
}

func (m *model) waits(key int) bool {
	_, delayed := m.due[key]
	return m.dirty[key] || delayed
}

// grant is called before the key becomes dirty or gets a deadline.
func (m *model) grant(key int, w addParams) {
	old := m.priority[key]
	switch {
	case w.keep && (m.waits(key) || m.held[key]):
	case !m.waits(key):
		m.priority[key] = w.priority
	case w.priority > old:
		m.priority[key] = w.priority
		if m.dirty[key] && !m.held[key] {
			m.ready.remove(key, w.flow, old)
			m.ready.push(key, w.flow, w.priority)
		}
	}
}

func (m *model) add(key int, w addParams, now int64) {
	if m.shut {
		return
	}
	m.grant(key, w)
	m.mark(key, w.flow)
	if _, ok := m.asked[key]; !ok {
		m.asked[key] = now
	}
}

func (m *model) mark(key int, flow string) {
	if m.dirty[key] {
		return
	}
	m.dirty[key] = true
	if !m.held[key] {
		m.ready.push(key, flow, m.priority[key])
	}
}

func (m *model) cancel(key int) {
	if m.dirty[key] {
		m.ready.remove(key, m.params(key, 0).flow, m.priority[key])
	}
	delete(m.dirty, key)
	delete(m.asked, key)
	delete(m.due, key)
}

func (m *model) take(t *testing.T) (int, bool) {
	key, ok := m.ready.take(t)
	if ok {
		delete(m.dirty, key)
		m.held[key] = true
		if since, ok := m.asked[key]; ok {
			delete(m.asked, key)
			m.answering[key] = since
		}
	}
	return key, ok
}

func (m *model) done(key int, now int64) {
	delete(m.held, key)
	if since, ok := m.answering[key]; ok {
		delete(m.answering, key)
		m.answered = append(m.answered, now-since)
	}
	if m.dirty[key] {
		m.ready.push(key, m.params(key, 0).flow, m.priority[key])
	}
}

func (m *model) delay(key int, due int64) {
	if old, waits := m.due[key]; !waits || due < old {
		m.due[key] = due
	}
}

// promoted returns the keys due at now, by deadline. Deadlines in tests are distinct.
func (m *model) promote(now int64) {
	var keys []int
	for key, due := range m.due {
		if due <= now {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b int) int { return cmp.Compare(m.due[a], m.due[b]) })
	for _, key := range keys {
		delete(m.due, key)
		m.mark(key, m.params(key, 0).flow)
	}
}

// check compares s with the model, and its lists, index, heap and slab with each other.
func (m *model) check(t *testing.T, s *state[int], hash func(int) uint32) {
	t.Helper()
	var answered times
	for _, took := range m.answered {
		answered.observe(took)
	}
	if s.answered != answered {
		t.Fatalf("answered %+v, want %+v: each Add that a hold has followed", s.answered, answered)
	}
	var ready []int
	s.inOrder(func(n number) { ready = append(ready, s.at(n).key) })
	if want := m.ready.inOrder(); !slices.Equal(ready, want) || s.backlog() != len(want) {
		t.Fatalf("W1: ready keys are %v, want %v: the order of those that are dirty and not held", ready, want)
	}
	if s.order == nil {
		walk(t, s, s.ready)
	} else {
		m.checkOrder(t, s)
	}
	if got := walk(t, s, s.held); len(got) != len(m.held) {
		t.Fatalf("W2: %d keys are held, want %d", len(got), len(m.held))
	}
	again, known := 0, map[int]bool{}
	for _, keys := range []map[int]bool{m.dirty, m.held} {
		for key := range keys {
			known[key] = true
		}
	}
	for key := range m.failures {
		known[key] = true
	}
	for key := range m.due {
		known[key] = true
	}
	for key := range known {
		n := s.find(key, hash(key))
		if n == 0 {
			t.Fatalf("key %d is not in the index: all that was known of it is lost", key)
		}
		e := s.at(n)
		if m.waits(key) && e.priority != m.priority[key] {
			t.Fatalf("key %d waits with priority %d, want %d: the highest that was asked for", key, e.priority, m.priority[key])
		}
		if e.is(dirty) != m.dirty[key] || e.is(held) != m.held[key] || int(e.failures) != m.failures[key] {
			t.Fatalf("key %d: dirty %t, held %t, failures %d, want %t, %t, %d", key,
				e.is(dirty), e.is(held), e.failures, m.dirty[key], m.held[key], m.failures[key])
		}
		if due, waits := m.due[key]; waits != (e.place != 0) || waits && s.dues[e.place-1] != due {
			t.Fatalf("W6: key %d: deadline %d %t, place in the heap %d", key, due, waits, e.place)
		}
		if m.dirty[key] && m.held[key] {
			again++
		}
	}
	if s.again != again || len(s.dues) != len(m.due) || s.live != len(known) || s.index.count != len(known) {
		t.Fatalf("counts: held and dirty %d, delayed %d, live %d, index %d; want %d, %d, %d, %d",
			s.again, len(s.dues), s.live, s.index.count, again, len(m.due), len(known), len(known))
	}
	checkMemory(t, s)
}

func walk(t *testing.T, s *state[int], l list) (keys []int) {
	t.Helper()
	prev := number(0)
	for n := l.head; n != 0; n = s.at(n).next {
		if s.at(n).prev != prev || len(keys) > l.len {
			t.Fatalf("entry %d of a list is linked back to %d, want %d", n, s.at(n).prev, prev)
		}
		keys = append(keys, s.at(n).key)
		prev = n
	}
	if l.tail != prev || l.len != len(keys) {
		t.Fatalf("a list of %d entries ends in %d, says length %d and tail %d", len(keys), prev, l.len, l.tail)
	}
	return keys
}

// checkMemory checks the order of the heap and the limits of the slab (W9).
func checkMemory(t *testing.T, s *state[int]) {
	t.Helper()
	for i, due := range s.dues {
		if i > 0 && s.dues[(i-1)/arity] > due {
			t.Fatalf("W6: dues[%d] = %d is before its parent", i, due)
		}
		if n := s.owners[i]; s.at(n).place != uint32(i)+1 {
			t.Fatalf("owners[%d] is entry %d, whose place is %d", i, n, int(s.at(n).place)-1)
		}
	}
	if len(s.heldStates)-len(s.freeStates) != s.held.len {
		t.Fatalf("W9: %d of %d heldStates are free with %d held keys: a state leaks", len(s.freeStates), len(s.heldStates), s.held.len)
	}
	free := 0
	for n := s.free; n != 0; n = s.at(n).next {
		if free++; s.at(n).is(used) || s.at(n).key != 0 || free > int(s.high) {
			t.Fatalf("W9: entry %d in the free list holds key %d", n, s.at(n).key)
		}
	}
	if s.high > 0 && free+s.live != int(s.high)-1 {
		t.Fatalf("W9: %d free and %d live entries, want %d together: an entry leaks", free, s.live, s.high-1)
	}
	if s.sparse() {
		t.Fatalf("W9: room for %d entries is kept for %d", s.high, s.live)
	}
	if c := len(s.index.slots); c > keptTable && 8*s.index.count < c {
		t.Fatalf("W9: %d slots are kept for %d keys", c, s.index.count)
	}
}

// hashes are a good hash, and two that make keys collide: at neighbouring homes with a wrap at the end, and all at one.
var hashes = []func(int) uint32{
	func(k int) uint32 { return uint32(k+1) * 2654435769 },
	func(k int) uint32 { return math.MaxUint32 - uint32(k%3)<<26 },
	func(int) uint32 { return math.MaxUint32 },
}

// FuzzState applies the same calls to state and model. An operation is two bytes: the call and the key.
func FuzzState(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 0, 1, 2, 0})
	f.Add([]byte{1, 0, 1, 3, 1, 4, 9, 7, 1, 5, 0, 6, 1, 8, 0, 1, 0})
	f.Add([]byte{2, 9, 20, 10, 5, 1, 0, 9, 3, 10, 30, 2, 1, 10, 60})
	f.Add([]byte{0, 9, 255, 3, 7, 10, 255, 11, 0, 0, 1, 10, 255})
	f.Add([]byte{3, 12, 1, 12, 18, 0, 1, 12, 33, 12, 49, 1, 0, 1, 0, 2, 1, 1, 0})
	f.Add([]byte{0, 0, 1, 0, 2, 12, 17, 13, 34, 1, 0, 14, 1, 15, 9, 4, 255, 1, 0, 1, 0})
	f.Add([]byte{3, 12, 17, 12, 18, 17, 17, 12, 33, 1, 0, 17, 2, 3, 20, 17, 4, 7, 5, 0, 5, 17, 5})
	f.Add([]byte{4, 9, 30, 12, 65, 10, 5, 12, 66, 10, 10, 9, 30, 16, 0, 10, 40})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) == 0 || len(ops) > 200 {
			return
		}
		which := int(ops[0]) % len(hashes)
		hash, burst := hashes[which], []int{8, 1, 1}[which]
		s, m := &state[int]{}, newModel(ops[0]/3%2 == 1)
		now := int64(0)
		for i := 1; i+1 < len(ops); i += 2 {
			now++
			step(t, s, m, hash, ops[i]%18, int(ops[i+1]), burst, now)
			m.check(t, s, hash)
		}
	})
}

// step makes one call of both. Deadlines are multiples of 1000 plus the key, so no two keys share one.
func step(t *testing.T, s *state[int], m *model, hash func(int) uint32, op byte, arg, burst int, now int64) {
	key := arg % 16
	priority := int8(arg/16%4-2) * 50
	due := int64(arg)*1000 + int64(key)
	switch op {
	case 0:
		add(s, m, hash, key, 0, now)
	case 1:
		take(t, s, m, now)
	case 2:
		if n := s.find(key, hash(key)); n != 0 && s.at(n).is(held) {
			s.done(n, now)
			m.done(key, now)
		}
	case 3:
		delay(s, m, hash, key, m.params(key, 0), due, now)
	case 4:
		s.promote(int64(arg)*1000, math.MaxInt)
		m.promote(int64(arg) * 1000)
	case 5:
		s.withdraw(key, hash(key))
		delete(m.due, key)
	case 6:
		s.forget(key, hash(key))
		delete(m.failures, key)
	case 7:
		s.fail(key, hash(key), m.params(key, 0).flow)
		m.failures[key]++
	case 8:
		s.shut = true
		for s.dropDelays(3) {
		}
		m.shut = true
		clear(m.due)
	case 9: // a burst
		for k := range burst * arg {
			add(s, m, hash, 16+k, 0, now)
		}
	case 10: // and its end
		for range burst * arg {
			if key, ok := take(t, s, m, now); ok {
				s.done(s.find(key, hash(key)), now)
				m.done(key, now)
			}
		}
	case 11:
		s.stamp(s.ensure(key, hash(key), m.params(key, 0).flow), now)
		s.drop(s.find(key, hash(key)))
	case 12:
		add(s, m, hash, key, priority, now)
	case 13:
		delay(s, m, hash, key, m.params(key, priority), due, now)
	case 14:
		s.arranged()
	case 15: // a worker requeues its key
		w := m.params(key, 0)
		w.keep = true
		delay(s, m, hash, key, w, due, now)
	case 16: // a burst of some priority
		for k := range burst * 8 {
			add(s, m, hash, 16+k, priority, now)
		}
	case 17:
		if got, ready := s.cancel(key, hash(key)); got != (m.waits(key) && !m.held[key]) || ready != (m.dirty[key] && !m.held[key]) {
			t.Fatalf("W13: cancel(%d) is %t, %t, and the key waits %t, dirty %t, held %t", key, got, ready, m.waits(key), m.dirty[key], m.held[key])
		} else if got {
			m.cancel(key)
		}
	}
}

func add(s *state[int], m *model, hash func(int) uint32, key int, priority int8, now int64) {
	w := m.params(key, priority)
	n, _, ready := s.add(key, hash(key), w)
	if ready {
		s.stamp(n, now)
	}
	if s.unasked(n) {
		s.ask(n, now)
	}
	m.add(key, w, now)
}

func delay(s *state[int], m *model, hash func(int) uint32, key int, w addParams, due, now int64) {
	if !s.shut {
		s.delay(key, hash(key), w, due, now)
		m.grant(key, w)
		m.delay(key, due)
	}
}

func take(t *testing.T, s *state[int], m *model, now int64) (int, bool) {
	var h hold[int]
	_, ok := s.take(&h, now)
	key, modelOK := m.take(t)
	if ok != modelOK || ok && h.key != key {
		t.Fatalf("take: the state hands out %d %t, its model %d %t", h.key, ok, key, modelOK)
	}
	return key, ok
}

// FuzzDelays compares the heap with a sorted list.
func FuzzDelays(f *testing.F) {
	f.Add([]byte{5, 4, 3, 2, 1, 200, 9, 9, 130})
	f.Fuzz(func(t *testing.T, ops []byte) {
		s := &state[int]{}
		due := map[int]int64{}
		for i, op := range ops {
			key := int(op % 64)
			n := s.ensure(key, hashes[0](key), "")
			switch {
			case op < 128:
				at := int64(op)*int64(i%7) + int64(i%3)
				old, waits := due[key]
				if got, want := s.schedule(n, at), !waits || at < old; got != want {
					t.Fatalf("W6: schedule(%d) = %t with deadline %d %t, want %t: the earlier deadline wins", at, got, old, waits, want)
				}
				if !waits || at < old {
					due[key] = at
				}
			default:
				_, waits := due[key]
				if got := s.unschedule(n); got != waits {
					t.Fatalf("unschedule = %t, want %t", got, waits)
				}
				delete(due, key)
			}
		}
		last := int64(math.MinInt64)
		for len(s.dues) > 0 {
			n, at := s.owners[0], s.dues[0]
			key := s.at(n).key
			if at < last || at != due[key] {
				t.Fatalf("W6: key %d comes out with %d after %d, want %d, in order", key, at, last, due[key])
			}
			last = at
			s.unschedule(n)
			delete(due, key)
		}
		if len(due) > 0 {
			t.Fatalf("W6: deadlines %v are lost", due)
		}
	})
}

func TestHistogram_BucketIsTheFirstBoundNotBelow(t *testing.T) {
	for _, bound := range bounds[:finite] {
		for _, ns := range []int64{bound - 1, bound, bound + 1} {
			want := slices.IndexFunc(bounds[:], func(b int64) bool { return ns <= b })
			if got := bucket(ns); got != want {
				t.Errorf("bucket(%d) = %d, want %d", ns, got, want)
			}
		}
	}
	for ns, want := range map[int64]int{0: 0, 1: 0, math.MaxInt64: finite} {
		if got := bucket(ns); got != want {
			t.Errorf("bucket(%d) = %d, want %d", ns, got, want)
		}
	}
	var h times
	for _, ns := range []int64{5, 50, 5e12} {
		h.observe(ns)
	}
	var below []uint64
	shown := h.histogram()
	for _, n := range shown.Buckets() {
		below = append(below, n)
	}
	if shown.Count != 3 || below[0] != 1 || below[1] != 2 || below[finite-1] != 2 {
		t.Errorf("Count %d, Buckets %v: want 3, and 1, 2, ..., 2 with one observation beyond all bounds", shown.Count, below)
	}
}
