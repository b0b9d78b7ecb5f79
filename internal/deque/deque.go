// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package deque is a log: elements are appended at the back, removed at the
// front, and accessed by number. It consists of chunks, so that it never copies
// elements, and frees memory as it empties.
package deque

const (
	chunk = 128
	// spares is how many free chunks are kept while the log is not empty.
	spares = 8
)

// Deque is an empty log as its zero value. Its owner's lock guards it.
type Deque[E any] struct {
	chunks []*[chunk]E
	front  uint64 // number of the first element
	back   uint64 // number of the next element
	base   uint64 // number of the first element of chunks[0]
	spare  []*[chunk]E
}

// Len returns the number of elements.
func (d *Deque[E]) Len() int { return int(d.back - d.front) }

// Front returns the number of the first element. An element keeps its number.
func (d *Deque[E]) Front() uint64 { return d.front }

// Back returns the number of the next element to be pushed.
func (d *Deque[E]) Back() uint64 { return d.back }

// Push appends e and returns its number.
func (d *Deque[E]) Push(e E) uint64 {
	at := d.back - d.base
	if at == uint64(len(d.chunks))*chunk {
		var c *[chunk]E
		if n := len(d.spare); n > 0 {
			c, d.spare = d.spare[n-1], d.spare[:n-1]
		} else {
			c = new([chunk]E)
		}
		d.chunks = append(d.chunks, c)
	}
	d.chunks[at/chunk][at%chunk] = e
	d.back++
	return d.back - 1
}

// At returns the element with number i, from Front to Back-1.
func (d *Deque[E]) At(i uint64) *E {
	at := i - d.base
	return &d.chunks[at/chunk][at%chunk]
}

// Pop removes and returns the first element; the log must not be empty.
func (d *Deque[E]) Pop() E {
	p := d.At(d.front)
	e := *p
	var zero E
	*p = zero
	d.front++
	if d.front-d.base == chunk {
		if len(d.spare) < spares {
			d.spare = append(d.spare, d.chunks[0])
		}
		d.chunks[0] = nil
		d.chunks = d.chunks[1:]
		d.base += chunk
	}
	if d.front == d.back && len(d.chunks) == 1 {
		d.base, d.spare = d.front, nil // start over in the same chunk
	}
	return e
}
