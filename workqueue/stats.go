// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math/bits"
	"time"

	"github.com/flyball-dev/flyball/internal/histogram"
)

// Stats are the numbers of a queue at one moment. Reading them takes the lock and copies a few hundred bytes.
type Stats struct {
	Name string

	Ready   int // keys waiting for a worker
	Held    int // keys that workers have
	Dirty   int // held keys that become ready again after Done
	Delayed int // deadlines; their keys may also be ready or held
	Keys    int // known keys, including those with only a count of failures
	Flows   int // flows with keys, without the nameless one; 0 without FairBy

	Priorities []PriorityStats // highest first, 0 and all ever used; nil if only 0 was

	Adds    uint64 // times a key became dirty
	Retries uint64 // calls of AddAfter and AddRateLimited

	Latency Histogram // from ready to handed out
	Work    Histogram // from handed out to Done

	// Answered is the time from an Add to the Done of the first hold that begins after it. Of several Adds answered by one
	// hold the first counts. Delayed and rate-limited adds do not count, since they ask for nothing new.
	Answered Histogram

	Unfinished time.Duration // sum of the present hold times
	OldestHeld time.Duration // longest present hold; 0: none
}

// Depth returns the number of dirty keys: those ready, and those held that become ready after Done.
func (s Stats) Depth() int { return s.Ready + s.Dirty }

// PriorityStats are the numbers of one priority.
type PriorityStats struct {
	Priority int
	Ready    int // keys waiting for a worker
	Dirty    int // held keys that become ready again after Done
}

// Depth returns the number of dirty keys of the priority.
func (s PriorityStats) Depth() int { return s.Ready + s.Dirty }

// Histogram counts durations: its Count, its Sum, and Buckets(), which yields each upper bound, inclusive, with the number of
// durations up to it. Those of a queue are decades, from 10 ns to 1000 s: the buckets that dashboards of work queues expect.
type Histogram = histogram.Histogram

const finite = 12 // 10 ns to 1000 s

// times counts durations in decades.
type times struct {
	sum    time.Duration
	counts [finite + 1]uint64
}

// bounds are the finite upper bounds in nanoseconds; the last entry ends the search in bucket.
var bounds = [finite + 1]int64{1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1<<63 - 1}

// decades are the finite ones of bounds.
var decades = [finite]time.Duration{1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

func (t *times) observe(ns int64) {
	t.sum += time.Duration(ns)
	t.counts[bucket(ns)]++
}

func (t *times) histogram() Histogram { return histogram.New(decades[:], t.counts[:], t.sum) }

// bucket returns the first bucket whose bound is not below ns. 2^b has about 0.301*b decimal digits, so the number of bits
// gives the decade, or the one before it.
func bucket(ns int64) int {
	if ns <= bounds[0] {
		return 0
	}
	i := min(bits.Len64(uint64(ns-1))*1233>>12, finite) - 1
	for bounds[i] < ns {
		i++
	}
	return i
}
