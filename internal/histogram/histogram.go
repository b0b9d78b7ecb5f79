// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram counts durations in buckets, for metrics.
//
//	Observe ──▶ Recorder ──Histogram()──▶ Histogram ──Buckets()──▶ metrics
//
// A Recorder is safe for concurrent use and takes no lock. A Histogram is a value.
package histogram

import (
	"iter"
	"sync/atomic"
	"time"
)

// Most is the largest number of bounds.
const Most = 15

// Histogram is how many durations were counted, and how long they were. The zero value
// has none.
type Histogram struct {
	// Count of all durations.
	Count uint64
	// Sum of all durations.
	Sum time.Duration

	bounds []time.Duration // not to be changed
	counts [Most + 1]uint64
}

// New returns a Histogram of what was counted elsewhere: for each of the bounds, which
// rise, the durations above the bound before and up to it, then those above all.
func New(bounds []time.Duration, counts []uint64, sum time.Duration) Histogram {
	h := Histogram{Sum: sum, bounds: bounds}
	for i := range copy(h.counts[:len(bounds)+1], counts) {
		h.Count += h.counts[i]
	}
	return h
}

// Buckets yields each bound, inclusive, with the number of durations up to it. Count
// stands for the infinite one.
func (h Histogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		var below uint64
		for i, bound := range h.bounds {
			below += h.counts[i]
			if !yield(bound, below) {
				return
			}
		}
	}
}

// Recorder counts durations. Its Bounds rise, are at most Most, and do not change.
type Recorder struct {
	Bounds []time.Duration

	counts [Most + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts d.
func (r *Recorder) Observe(d time.Duration) {
	i := 0
	for i < len(r.Bounds) && d > r.Bounds[i] {
		i++
	}
	r.counts[i].Add(1)
	r.sum.Add(int64(d))
}

// Histogram is what has been counted.
func (r *Recorder) Histogram() Histogram {
	var counts [Most + 1]uint64
	for i := range counts {
		counts[i] = r.counts[i].Load()
	}
	return New(r.Bounds, counts[:len(r.Bounds)+1], time.Duration(r.sum.Load()))
}
