// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
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
	ReconcileTime workqueue.Histogram
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

// Snapshot copies the controller's state. It takes a few microseconds.
func (c *Controller[K]) Snapshot() Snapshot {
	s := Snapshot{
		Name:          c.name,
		Workers:       len(c.workers),
		HardDeadline:  c.hard,
		Queue:         c.queue.Stats(),
		Outcomes:      make(map[Outcome]uint64, len(outcomes)),
		Overdue:       c.counters.overdue.Load(),
		ReconcileTime: c.counters.took.Histogram(),
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

// Failures are the last errors of the keys that are tried again with backoff, in no
// order. A key is not among them any more when a reconcile of it ends otherwise; one
// that ends with a terminal error waits for nothing, and is told of in the log alone.
// It copies all of them under a lock: Snapshot has the numbers of outcomes.
func (c *Controller[K]) Failures() []Failure[K] { return c.failures.all() }
