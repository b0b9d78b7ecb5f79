// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Snapshot says where a controller stands, for metrics, health and debugging.
type Snapshot struct {
	// Name of the controller.
	Name string
	// Synced: the sources are synced and the workers have started.
	Synced bool
	// Workers that there are, and Active those that reconcile now.
	Workers, Active int
	// HardDeadline at which a reconcile's context is cancelled. Negative: never.
	HardDeadline time.Duration
	// HardDeadlineChosen: the options give it, and it is not the default.
	HardDeadlineChosen bool
	// Sources in the order of their Watch.
	Sources []source.Snapshot
	// Queue in numbers, as far as the queue knows them.
	Queue workqueue.Stats
	// Outcomes counts the reconciles that have ended by how.
	Outcomes map[Outcome]uint64
	// Overdue counts the reconciles that have passed the soft deadline.
	Overdue uint64
	// ReconcileTime is how long the reconciles took that have ended.
	ReconcileTime Histogram
	// Moves counts the signs that the workers move: reconciles that have begun or
	// ended, and requests that a reconcile has sent through the manager's
	// configuration or had answered.
	Moves uint64
	// LastEnded is when a reconcile has last ended; zero: none has.
	LastEnded time.Time
	// Running reconciles, the longest first.
	Running []Running
}

// Running is one reconcile that is running.
type Running struct {
	// Key in the form of the logs.
	Key string
	// ID is the reconcileID of the logs.
	ID string
	// Since when it runs.
	Since time.Time
}

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

// Snapshot copies the controller's state. It takes a few microseconds.
func (c *Controller[K]) Snapshot() Snapshot {
	s := Snapshot{
		Name:          c.name,
		Workers:       len(c.workers),
		HardDeadline:  c.hard,
		Queue:         c.queueStats(),
		Outcomes:      make(map[Outcome]uint64, len(outcomes)),
		Overdue:       c.counters.overdue.Load(),
		ReconcileTime: c.counters.histogram(),
		Running:       c.running(),
		Moves:         c.counters.moves.Load(),

		HardDeadlineChosen: c.hardChosen,
	}
	s.Active = len(s.Running)
	select {
	case <-c.synced:
		s.Synced = true
	default:
	}
	if ns := c.counters.last.Load(); ns != 0 {
		s.LastEnded = time.Unix(0, ns)
	}
	for i, o := range outcomes {
		s.Outcomes[o] = c.counters.outcome[i].Load()
	}
	for _, src := range c.allSources() {
		s.Sources = append(s.Sources, source.SnapshotOf(src))
	}
	return s
}

func (c *Controller[K]) allSources() []source.Source[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.sources)
}

func (c *Controller[K]) running() []Running {
	var all []Running
	for i := range c.workers {
		if r := c.workers[i].held(); r != nil {
			all = append(all, Running{Key: keyText(r.key), ID: r.id(), Since: r.since})
		}
	}
	slices.SortFunc(all, func(a, b Running) int { return a.Since.Compare(b.Since) })
	return all
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
