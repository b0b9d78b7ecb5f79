// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package deque is a log: elements join at the back, leave at the front, and
// are found by their number in between. It is kept in chunks, so that it never
// copies what it holds, and gives memory back as it empties.
package deque

const (
	chunk = 128
	// spares are chunks kept for what joins next, until the log is empty.
	spares = 8
)

// Deque is empty as its zero value. Its owner's lock guards it.
type Deque[E any] struct {
	chunks []*[chunk]E
	front  uint64 // number of the first element
	back   uint64 // number after the last
	base   uint64 // number of the first place of chunks[0]
	spare  []*[chunk]E
}

// Len is the number of elements.
func (d *Deque[E]) Len() int { return int(d.back - d.front) }

// Front is the number of the first element, Back the one after the last. An
// element keeps its number.
func (d *Deque[E]) Front() uint64 { return d.front }

// Back is the number that the next element gets.
func (d *Deque[E]) Back() uint64 { return d.back }

// Push puts e at the back and returns its number.
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

// At is the element with number i, which must be from Front up to Back.
func (d *Deque[E]) At(i uint64) *E {
	at := i - d.base
	return &d.chunks[at/chunk][at%chunk]
}

// Pop takes the front element, of which there must be one.
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
		d.base, d.spare = d.front, nil // begin anew in the same chunk
	}
	return e
}
