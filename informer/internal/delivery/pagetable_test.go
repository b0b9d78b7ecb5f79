// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"math/rand/v2"
	"testing"
)

// A table is compared with a map.
func TestTable_AgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var table pageTable[int]
	model := map[uint32]*int{}
	for step := range 200_000 {
		// Alternate between many and few numbers.
		i := uint32(random.IntN(20_000))
		var v *int
		if random.IntN(2+step/20_000%4*3) == 0 {
			v = &step
		}
		table.Set(i, v)
		if model[i] = v; v == nil {
			delete(model, i)
		}
		i = uint32(random.IntN(20_000))
		if got := table.Get(i); got != model[i] {
			t.Fatalf("step %d: number %d has %v, want %v", step, i, got, model[i])
		}
	}
	for i := range uint32(30_000) {
		if got := table.Get(i); got != model[i] {
			t.Fatalf("number %d has %v, want %v", i, got, model[i])
		}
	}
}

func TestTable_EmptyPagesAreGivenBack(t *testing.T) {
	var table pageTable[int]
	for i := range uint32(100_000) {
		table.Set(i, new(int))
	}
	for i := range uint32(100_000) {
		table.Set(i, nil)
	}
	n := 0
	for _, p := range table.pages {
		if p != nil {
			n++
		}
	}
	if n > pagesKept {
		t.Errorf("an empty table has %d pages, want at most %d", n, pagesKept)
	}
}

// Compares the cost of a number with that of a map's key.
func BenchmarkTable(b *testing.B) {
	const n = 20_000
	var table pageTable[int]
	v := new(int)
	b.Run("SetGetClear", func(b *testing.B) {
		i := uint32(0)
		for b.Loop() {
			i = (i + 7919) % n
			table.Set(i, v)
			if table.Get(i) == nil {
				b.Fatal("it is gone")
			}
			table.Set(i, nil)
		}
	})
	model := map[uint32]*int{}
	b.Run("map", func(b *testing.B) {
		i := uint32(0)
		for b.Loop() {
			i = (i + 7919) % n
			model[i] = v
			if model[i] == nil {
				b.Fatal("it is gone")
			}
			delete(model, i)
		}
	})
}
