// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

const (
	arity    = 4
	keptHeap = 2048 // deadlines whose room is never given back
)

// deadline says when an entry becomes due, in nanoseconds of the queue's clock.
type deadline struct {
	due int64
	n   number
}

// delays is a 4-ary heap of deadlines, the earliest first. Each entry knows its place in the heap, so that a deadline can be
// moved or withdrawn.
type delays[K comparable] struct {
	slab[K]
	heap []deadline
}

// schedule gives entry n a deadline, or an earlier one than it has. It reports whether it did.
func (d *delays[K]) schedule(n number, due int64) bool {
	e := d.at(n)
	if e.place != 0 {
		i := int(e.place) - 1
		if d.heap[i].due <= due {
			return false
		}
		d.up(i, deadline{due, n})
		return true
	}
	d.heap = append(d.heap, deadline{})
	d.up(len(d.heap)-1, deadline{due, n})
	return true
}

// unschedule takes the deadline of entry n away. It reports whether there was one.
func (d *delays[K]) unschedule(n number) bool {
	e := d.at(n)
	if e.place == 0 {
		return false
	}
	i := int(e.place) - 1
	e.place = 0
	last := len(d.heap) - 1
	w := d.heap[last]
	d.heap = d.heap[:last]
	if i < last {
		d.settle(i, w)
	}
	if c := cap(d.heap); c > keptHeap && len(d.heap) < c/4 {
		d.heap = append(make([]deadline, 0, c/2), d.heap...)
	}
	return true
}

// due reports whether the earliest deadline has been reached at now.
func (d *delays[K]) due(now int64) bool { return len(d.heap) > 0 && d.heap[0].due <= now }

// settle puts w into the hole at i and restores the order in whichever direction it is broken.
func (d *delays[K]) settle(i int, w deadline) {
	if i > 0 && w.due < d.heap[(i-1)/arity].due {
		d.up(i, w)
		return
	}
	d.down(i, w)
}

func (d *delays[K]) up(i int, w deadline) {
	for i > 0 {
		parent := (i - 1) / arity
		if d.heap[parent].due <= w.due {
			break
		}
		d.place(i, d.heap[parent])
		i = parent
	}
	d.place(i, w)
}

func (d *delays[K]) down(i int, w deadline) {
	for {
		first := arity*i + 1
		if first >= len(d.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(d.heap)); c++ {
			if d.heap[c].due < d.heap[least].due {
				least = c
			}
		}
		if w.due <= d.heap[least].due {
			break
		}
		d.place(i, d.heap[least])
		i = least
	}
	d.place(i, w)
}

func (d *delays[K]) place(i int, w deadline) {
	d.heap[i] = w
	d.at(w.n).place = uint32(i) + 1
}
