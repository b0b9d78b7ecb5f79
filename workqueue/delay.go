// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

const (
	arity    = 4
	keptHeap = 2048 // deadlines; room for these is never freed
)

// deadline is when an entry becomes due, in nanoseconds of the queue's clock.
type deadline struct {
	due int64
	n   number
}

// delays is a 4-ary heap of deadlines, earliest first. Each entry has its position in the heap, so a deadline can be moved or
// withdrawn. Times and numbers are in two slices: together they would be padded from 12 bytes to 16, and a search for the
// earliest of four children reads only the times.
type delays[K comparable] struct {
	slab[K]
	dues   []int64
	owners []number // dues[i] belongs to entry owners[i]
}

// schedule gives entry n a deadline, or an earlier one, and reports whether it did.
func (d *delays[K]) schedule(n number, due int64) bool {
	e := d.at(n)
	if e.place != 0 {
		i := int(e.place) - 1
		if d.dues[i] <= due {
			return false
		}
		d.up(i, deadline{due, n})
		return true
	}
	d.dues, d.owners = append(d.dues, 0), append(d.owners, 0)
	d.up(len(d.dues)-1, deadline{due, n})
	return true
}

// unschedule removes the deadline of entry n, and reports whether there was one.
func (d *delays[K]) unschedule(n number) bool {
	e := d.at(n)
	if e.place == 0 {
		return false
	}
	i := int(e.place) - 1
	e.place = 0
	last := len(d.dues) - 1
	w := deadline{d.dues[last], d.owners[last]}
	d.dues, d.owners = d.dues[:last], d.owners[:last]
	if i < last {
		d.fix(i, w)
	}
	if c := cap(d.dues); c > keptHeap && last < c/4 {
		d.dues = append(make([]int64, 0, c/2), d.dues...)
		d.owners = append(make([]number, 0, c/2), d.owners...)
	}
	return true
}

func (d *delays[K]) due(now int64) bool { return len(d.dues) > 0 && d.dues[0] <= now }

// fix puts w into the hole at i and restores the order in the direction in which it is violated.
func (d *delays[K]) fix(i int, w deadline) {
	if i > 0 && w.due < d.dues[(i-1)/arity] {
		d.up(i, w)
		return
	}
	d.down(i, w)
}

func (d *delays[K]) up(i int, w deadline) {
	for i > 0 {
		parent := (i - 1) / arity
		if d.dues[parent] <= w.due {
			break
		}
		d.place(i, deadline{d.dues[parent], d.owners[parent]})
		i = parent
	}
	d.place(i, w)
}

func (d *delays[K]) down(i int, w deadline) {
	for {
		first := arity*i + 1
		if first >= len(d.dues) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(d.dues)); c++ {
			if d.dues[c] < d.dues[least] {
				least = c
			}
		}
		if w.due <= d.dues[least] {
			break
		}
		d.place(i, deadline{d.dues[least], d.owners[least]})
		i = least
	}
	d.place(i, w)
}

func (d *delays[K]) place(i int, w deadline) {
	d.dues[i], d.owners[i] = w.due, w.n
	d.at(w.n).place = uint32(i) + 1
}
