// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The map agrees with a Go map while it grows and shrinks.
func TestMap_AgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m, model := newTree[int, int](cmp.Compare[int]), map[int]int{}
	for step := range 60_000 {
		key := random.IntN(4000)
		if grows := step/15_000%2 == 0; random.IntN(10) < 3 == grows {
			_, want := model[key]
			if got := m.Delete(key); got != want {
				t.Fatalf("step %d: delete %d says %t, want %t", step, key, got, want)
			}
			delete(model, key)
		} else {
			m.Set(key, step)
			model[key] = step
		}
		if got, ok := m.Get(key); got != model[key] || ok != (model[key] != 0 || hasKey(model, key)) || m.Len() != len(model) {
			t.Fatalf("step %d: %d has %d, %t among %d; want %d among %d", step, key, got, ok, m.Len(), model[key], len(model))
		}
		if step%1000 == 0 || len(model) < 3 {
			compare(t, m, model, random.IntN(4100)-50)
		}
	}
}

func hasKey(m map[int]int, key int) bool {
	_, ok := m[key]
	return ok
}

func compare(t *testing.T, m *tree[int, int], model map[int]int, from int) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(model))
	rank, _ := slices.BinarySearch(keys, from)
	if got := m.Rank(from); got != rank {
		t.Fatalf("the rank of %d is %d, want %d", from, got, rank)
	}
	var all, later []int
	for key, value := range m.All() {
		if all = append(all, key); value != model[key] {
			t.Fatalf("%d has %d, want %d", key, value, model[key])
		}
	}
	for key := range m.From(from) {
		later = append(later, key)
	}
	if !slices.Equal(all, keys) || !slices.Equal(later, keys[rank:]) {
		t.Fatalf("all: %v\nfrom %d: %v\nwant %v", all, from, later, keys)
	}
	for key := range m.From(from) {
		if key != keys[rank] {
			t.Fatalf("the first from %d is %d, want %d", from, key, keys[rank])
		}
		break
	}
}
