// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func values(s vectorView[int]) []int {
	out := []int{}
	for e := range s.All() {
		out = append(out, *e)
	}
	return out
}

// A vector and its snapshots are compared with slices.
func FuzzVector(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 3, 2, 3})
	f.Add(slices.Repeat([]byte{0}, 1100))
	r := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 5000)
	for i := range long {
		long[i] = byte(r.IntN(256))
		if i < 2500 && long[i]%4 == 2 {
			long[i] = 0
		}
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, ops []byte) {
		var v vector[int]
		model := []int{}
		type taken struct {
			view vectorView[int]
			want []int
		}
		var snaps []taken
		for n, op := range ops {
			switch {
			case op%4 == 0 || len(model) == 0:
				v.Append(n)
				model = append(model, n)
			case op%4 == 1:
				i := int(op) * 7919 % len(model)
				*v.Edit(i) = -n
				model[i] = -n
			case op%4 == 2:
				want := model[len(model)-1]
				model = model[:len(model)-1]
				if got := v.Pop(); got != want {
					t.Fatalf("op %d: popped %d, want %d", n, got, want)
				}
			case len(snaps) < 64:
				snaps = append(snaps, taken{v.View(), slices.Clone(model)})
			}
			if v.Len() != len(model) {
				t.Fatalf("op %d: length %d, want %d", n, v.Len(), len(model))
			}
		}
		if got := values(v.View()); !slices.Equal(got, model) {
			t.Fatalf("got %v, want %v", got, model)
		}
		for i, s := range snaps {
			if got := values(s.view); !slices.Equal(got, s.want) {
				t.Fatalf("snapshot %d: got %v, want %v: a later write reached into it", i, got, s.want)
			}
			for j, want := range s.want {
				if got := *s.view.At(j); got != want {
					t.Fatalf("snapshot %d: at %d got %d, want %d", i, j, got, want)
				}
			}
		}
	})
}

func TestVector_SmallSnapshotCostsNothing(t *testing.T) {
	var v vector[int]
	for i := range 100_000 {
		v.Append(i)
	}
	if got := testing.AllocsPerRun(100, func() { _ = v.View() }); got != 0 {
		t.Errorf("a snapshot of 100,000 elements allocates %v times, want 0", got)
	}
	for range 100_000 {
		v.Pop()
	}
	if v.view.root != nil {
		t.Errorf("an emptied vector keeps nodes: memory is not given back")
	}
}
