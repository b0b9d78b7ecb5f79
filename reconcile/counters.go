// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"sync/atomic"
	"time"
)

// Histogram counts times in fixed buckets.
type Histogram struct {
	// Bounds of the buckets in seconds, rising, each inclusive.
	Bounds []float64
	// Counts of the times up to each bound.
	Counts []uint64
	// Count of all times, also those above the last bound.
	Count uint64
	// Sum of all times.
	Sum time.Duration
}

// outcomes in the order of their counters.
var outcomes = [...]Outcome{
	OutcomeDone, OutcomeAfter, OutcomeRetry, OutcomeConflict, OutcomeError,
	OutcomeTerminal, OutcomePanic, OutcomeTimeout, OutcomeStopped,
}

// bounds of the reconcile times, in nanoseconds: those that dashboards know, thinned
// out, and two above them for the deadlines.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// counters only rise.
type counters struct {
	outcome [len(outcomes)]atomic.Uint64
	overdue atomic.Uint64
	moves   atomic.Uint64
	bucket  [len(bounds) + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
	last    atomic.Int64 // nanoseconds since 1970
}

// Moved counts a sign that a worker moves. It implements lifesign.Taker.
func (c *counters) Moved() { c.moves.Add(1) }

func (c *counters) add(o Outcome) { c.outcome[slices.Index(outcomes[:], o)].Add(1) }

// observe counts a reconcile that took d and has just ended.
func (c *counters) observe(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	c.bucket[i].Add(1)
	c.sum.Add(int64(d))
	c.last.Store(time.Now().UnixNano())
}

func (c *counters) histogram() Histogram {
	h := Histogram{Sum: time.Duration(c.sum.Load())}
	for i := range bounds {
		h.Count += c.bucket[i].Load()
		h.Bounds = append(h.Bounds, bounds[i].Seconds())
		h.Counts = append(h.Counts, h.Count)
	}
	h.Count += c.bucket[len(bounds)].Load()
	return h
}
