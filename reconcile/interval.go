// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Interval is what a controller did in ten seconds, see Snapshot.Recent.
type Interval struct {
	// Began is when it began: a multiple of ten seconds since 1970.
	Began time.Time
	// Done, Requeued and Failed count the reconciles that ended in it. Requeued ones ended with
	// OutcomeRetry, OutcomeConflict or OutcomeStopped, Done ones with OutcomeDone or OutcomeAfter.
	Done, Requeued, Failed int
	// Ready is how many keys waited for a worker at most, and Oldest how long one had waited. Both
	// are sampled when a reconcile begins and when a Snapshot is taken, ten times a second at most.
	Ready  int
	Oldest time.Duration
}

const (
	intervalLength  = 10 * time.Second
	recentIntervals = 60
	sampledEvery    = 100 * time.Millisecond
)

// recent are the last intervals. The zero recent is ready to use. Safe for concurrent use.
type recent struct {
	sampled atomic.Int64 // when the queue was, in nanoseconds since 1970
	mu      struct {
		sync.Mutex
		ring [recentIntervals]interval
	}
}

// interval is an Interval of the ring.
type interval struct {
	number                 int64 // of ten seconds since 1970
	done, requeued, failed uint32
	ready                  int
	oldest                 time.Duration
}

func numberOf(now time.Time) int64 { return now.UnixNano() / int64(intervalLength) }

// atLocked returns the interval of now, which is empty if nothing has happened in it.
func (r *recent) atLocked(now time.Time) *interval {
	number := numberOf(now)
	at := &r.mu.ring[number%recentIntervals]
	if at.number != number {
		*at = interval{number: number}
	}
	return at
}

// count counts a reconcile that has ended.
func (r *recent) count(outcome Outcome, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch at := r.atLocked(now); outcome {
	case OutcomeDone, OutcomeAfter:
		at.done++
	case OutcomeRetry, OutcomeConflict, OutcomeStopped:
		at.requeued++
	default:
		at.failed++
	}
}

// due reports whether the queue is to be sampled at now. It then is for one caller.
func (r *recent) due(now time.Time) bool {
	last, at := r.sampled.Load(), now.UnixNano()
	return (at >= last+int64(sampledEvery) || at < last) && r.sampled.CompareAndSwap(last, at)
}

// sample records how many keys of a queue are ready, and how long one has waited, unless that has just
// been done.
func (r *recent) sample(queue interface{ Stats() workqueue.Stats }, now time.Time) {
	if !r.due(now) {
		return
	}
	ready, oldest := 0, time.Duration(0)
	if q, ok := queue.(interface{ Waiting() (int, time.Duration) }); ok {
		ready, oldest = q.Waiting()
	} else {
		ready = queue.Stats().Ready
	}
	if ready == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.atLocked(now)
	at.ready, at.oldest = max(at.ready, ready), max(at.oldest, oldest)
}

// intervals returns those of the ten minutes before now in which something happened.
func (r *recent) intervals(now time.Time) (all []Interval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := numberOf(now)
	for number := last - recentIntervals + 1; number <= last; number++ {
		if at := r.mu.ring[number%recentIntervals]; at.number == number {
			all = append(all, Interval{
				Began: time.Unix(0, number*int64(intervalLength)),
				Done:  int(at.done), Requeued: int(at.requeued), Failed: int(at.failed), Ready: at.ready, Oldest: at.oldest,
			})
		}
	}
	return all
}
