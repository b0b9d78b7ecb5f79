// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package deque

import (
	"slices"
	"testing"
)

func FuzzDeque(f *testing.F) {
	f.Add(slices.Repeat([]byte{0, 0, 1}, 400))
	f.Add(append(slices.Repeat([]byte{0}, 300), slices.Repeat([]byte{1}, 300)...))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var d Deque[int]
		var model []int
		for n, op := range ops {
			if op%2 == 0 || len(model) == 0 {
				if got, want := d.Push(n), d.Back()-1; got != want {
					t.Fatalf("op %d: number %d, want %d", n, got, want)
				}
				model = append(model, n)
			} else {
				if got := d.Pop(); got != model[0] {
					t.Fatalf("op %d: popped %d, want %d", n, got, model[0])
				}
				model = model[1:]
			}
			if d.Len() != len(model) {
				t.Fatalf("op %d: length %d, want %d", n, d.Len(), len(model))
			}
			for i, want := range model {
				if got := *d.At(d.Front() + uint64(i)); got != want {
					t.Fatalf("op %d: element %d is %d, want %d", n, i, got, want)
				}
			}
		}
	})
}

func TestDeque_GivesMemoryBack(t *testing.T) {
	var d Deque[*int]
	for range 10 * chunk {
		d.Push(new(int))
	}
	for d.Len() > 0 {
		d.Pop()
	}
	if len(d.chunks) > 1 || len(d.chunks) == 1 && d.spare != nil {
		t.Errorf("empty, it keeps %d chunks and a spare one (%v), want one at most", len(d.chunks), d.spare != nil)
	}
	for _, c := range d.chunks {
		for i, e := range c {
			if e != nil {
				t.Errorf("place %d still refers to an element that was popped", i)
			}
		}
	}
}
