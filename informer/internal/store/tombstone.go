// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/kube"
)

// tombstoneLimit is how many deletions are remembered; the oldest goes first.
const tombstoneLimit = 10_000

// tombstone hides an object, by UID, that this process has seen go, while a list or watch
// may still deliver the object.
type tombstone struct {
	after kube.Version // the deletion is later; 0: no tombstone
	last  bool         // after is the version of the object's last known state
	held  bool         // a scope has or had the object, so that its end is still to come
	lists uint8        // lists that had the object nevertheless
	list  kube.Version // the newest of them
}

const (
	// livingLists is how many lists, each newer than the one before it, show that an object
	// lives. One list cannot be ordered relative to the deletion. But the second began after
	// the first, and so after the deletion.
	livingLists = 2
	// restoredLists is livingLists for a state from before the deletion: caches that lag can
	// list such a state more than once. Only a restored backup does so again and again.
	restoredLists = 5
)

// shown returns the tombstone after a list or watch shows the object; zero: the
// object becomes visible again.
func (t tombstone) shown(n input) tombstone {
	if n.version == 0 {
		return tombstone{}
	}
	t.held = true
	if n.list > t.after && n.list > t.list {
		t.lists++
		t.list = n.list
	}
	enough := uint8(livingLists)
	if t.last && n.version <= t.after {
		enough = restoredLists
	}
	if t.lists >= enough {
		return tombstone{}
	}
	return t
}

// ended returns the tombstone after a list or watch reports the object gone.
// lagging: another scope is behind.
func (t tombstone) ended(n input, lagging bool) tombstone {
	left := n.version != 0 && n.version <= t.after // before the known end
	if left || n.missing && lagging {
		return t
	}
	return tombstone{}
}

// ageing is a map with a limit: the entry that was set first goes first.
type ageing[K comparable, V any] struct {
	limit     int
	values    map[K]aged[V]
	order     deque.Deque[K] // by number; stale where the map has another number
	forgotten uint64         // entries dropped because of the limit
}

type aged[V any] struct {
	value  V
	number uint64
}

func (m *ageing[K, V]) len() int { return len(m.values) }

func (m *ageing[K, V]) get(k K) V { return m.values[k].value }

// set keeps the age of an existing entry.
func (m *ageing[K, V]) set(k K, v V) {
	if old, ok := m.values[k]; ok {
		m.values[k] = aged[V]{v, old.number}
		return
	}
	if m.values == nil {
		m.values = make(map[K]aged[V])
	}
	m.values[k] = aged[V]{v, m.order.Push(k)}
	if len(m.values) > m.limit {
		if k, _, ok := m.oldest(); ok {
			m.drop(k)
			m.forgotten++
		}
	}
	if m.order.Len() > 2*len(m.values)+64 {
		m.compact()
	}
}

func (m *ageing[K, V]) drop(k K) {
	delete(m.values, k)
	if len(m.values) == 0 {
		m.values, m.order = nil, deque.Deque[K]{}
	}
}

// oldest returns the entry that was set first.
func (m *ageing[K, V]) oldest() (k K, v V, ok bool) {
	for m.order.Len() > 0 {
		k = *m.order.At(m.order.Front())
		if e, ok := m.values[k]; ok && e.number == m.order.Front() {
			return k, e.value, true
		}
		m.order.Pop()
	}
	return k, v, false
}

// compact drops stale entries of the order.
func (m *ageing[K, V]) compact() {
	var order deque.Deque[K]
	for m.order.Len() > 0 {
		number := m.order.Front()
		k := m.order.Pop()
		if e, ok := m.values[k]; ok && e.number == number {
			m.values[k] = aged[V]{e.value, order.Push(k)}
		}
	}
	m.order = order
}
