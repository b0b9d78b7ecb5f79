// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"iter"
	"slices"
)

// treeWidth is the capacity of a node.
const treeWidth = 128

// tree is an ordered map: a B-tree whose values are in its leaves. Create it with newTree. The lock
// of its owner guards it.
//
//	            ┌ c ─ m ┐               inner: children, and the first key of each
//	a b ──── c d e ──── m n o p         leaves: keys and values
//
// A full node is split in two, an empty node is removed. Each node knows how many values are below
// it, so the rank of a key, and the number of values between two keys, is found on the way down.
type tree[K, V any] struct {
	compare func(a, b K) int
	root    *treeNode[K, V]
}

// treeNode is a leaf if it has no children.
type treeNode[K, V any] struct {
	count    int // values in the node and below it
	keys     []K // of a leaf: its own; otherwise: the least key that each child can hold
	values   []V
	children []*treeNode[K, V]
}

// newTree returns an empty map whose keys are ordered by compare.
func newTree[K, V any](compare func(a, b K) int) *tree[K, V] {
	return &tree[K, V]{compare: compare, root: &treeNode[K, V]{}}
}

// Len returns the number of keys.
func (m *tree[K, V]) Len() int { return m.root.count }

// child returns the index of the child that a key belongs to.
func (m *tree[K, V]) child(n *treeNode[K, V], key K) int {
	i, found := slices.BinarySearchFunc(n.keys, key, m.compare)
	if found || i == 0 {
		return i
	}
	return i - 1
}

// Get returns the value of a key, and whether the key is present.
func (m *tree[K, V]) Get(key K) (value V, ok bool) {
	n := m.root
	for n.children != nil {
		n = n.children[m.child(n, key)]
	}
	i, ok := slices.BinarySearchFunc(n.keys, key, m.compare)
	if ok {
		value = n.values[i]
	}
	return value, ok
}

// Set stores the value of a key.
func (m *tree[K, V]) Set(key K, value V) {
	m.set(m.root, key, value)
	if right := m.root.split(); right != nil {
		left := m.root
		m.root = &treeNode[K, V]{count: left.count + right.count, keys: []K{left.keys[0], right.keys[0]}, children: []*treeNode[K, V]{left, right}}
	}
}

// set reports whether the key is new.
func (m *tree[K, V]) set(n *treeNode[K, V], key K, value V) (added bool) {
	if n.children == nil {
		i, found := slices.BinarySearchFunc(n.keys, key, m.compare)
		if found {
			n.values[i] = value
			return false
		}
		n.keys, n.values = slices.Insert(n.keys, i, key), slices.Insert(n.values, i, value)
		n.count++
		return true
	}
	i := m.child(n, key)
	if m.compare(key, n.keys[i]) < 0 {
		n.keys[i] = key
	}
	if added = m.set(n.children[i], key, value); added {
		n.count++
	}
	if right := n.children[i].split(); right != nil {
		n.keys, n.children = slices.Insert(n.keys, i+1, right.keys[0]), slices.Insert(n.children, i+1, right)
	}
	return added
}

// split moves the upper half of a node that is too full into a new node.
func (n *treeNode[K, V]) split() *treeNode[K, V] {
	if len(n.keys) <= treeWidth {
		return nil
	}
	right := &treeNode[K, V]{}
	n.keys, right.keys = treeHalves(n.keys)
	if n.children == nil {
		n.values, right.values = treeHalves(n.values)
		right.count = len(right.values)
	} else {
		n.children, right.children = treeHalves(n.children)
		for _, child := range right.children {
			right.count += child.count
		}
	}
	n.count -= right.count
	return right
}

func treeHalves[E any](all []E) (left, right []E) {
	half := len(all) / 2
	right = append(make([]E, 0, treeWidth+1), all[half:]...)
	clear(all[half:])
	return all[:half], right
}

// Delete removes a key and reports whether it was present.
func (m *tree[K, V]) Delete(key K) bool {
	deleted := m.delete(m.root, key)
	for len(m.root.children) == 1 {
		m.root = m.root.children[0]
	}
	if m.root.count == 0 {
		m.root = &treeNode[K, V]{}
	}
	return deleted
}

func (m *tree[K, V]) delete(n *treeNode[K, V], key K) bool {
	if n.children == nil {
		i, found := slices.BinarySearchFunc(n.keys, key, m.compare)
		if found {
			n.keys, n.values = slices.Delete(n.keys, i, i+1), slices.Delete(n.values, i, i+1)
			n.count--
		}
		return found
	}
	i := m.child(n, key)
	if !m.delete(n.children[i], key) {
		return false
	}
	if n.count--; n.children[i].count == 0 {
		n.keys, n.children = slices.Delete(n.keys, i, i+1), slices.Delete(n.children, i, i+1)
	}
	return true
}

// Rank returns the number of keys less than key, which need not be present.
func (m *tree[K, V]) Rank(key K) (rank int) {
	n := m.root
	for n.children != nil {
		i := m.child(n, key)
		for _, child := range n.children[:i] {
			rank += child.count
		}
		n = n.children[i]
	}
	i, _ := slices.BinarySearchFunc(n.keys, key, m.compare)
	return rank + i
}

// From returns the keys that are not less than key, in order, with their values. The map
// must not change during the iteration.
func (m *tree[K, V]) From(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.from(m, key, false, yield) }
}

// All returns all keys in order, with their values. The map must not change during the
// iteration.
func (m *tree[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var none K
		m.root.from(m, none, true, yield)
	}
}

// from reports whether the iteration continues.
func (n *treeNode[K, V]) from(m *tree[K, V], key K, all bool, yield func(K, V) bool) bool {
	i := 0
	if n.children == nil {
		if !all {
			i, _ = slices.BinarySearchFunc(n.keys, key, m.compare)
		}
		for ; i < len(n.keys); i++ {
			if !yield(n.keys[i], n.values[i]) {
				return false
			}
		}
		return true
	}
	if !all {
		i = m.child(n, key)
	}
	for first := i; i < len(n.children); i++ {
		if !n.children[i].from(m, key, all || i > first, yield) {
			return false
		}
	}
	return true
}
