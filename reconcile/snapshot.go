// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Snapshot is the state of a controller, for metrics, health and debugging.
type Snapshot struct {
	// Name of the controller.
	Name string
	// Synced reports whether the sources have synced and the workers have started.
	Synced bool
	// Workers in total, and Active ones that reconcile now.
	Workers, Active int
	// HardDeadline of reconciles. Negative: none.
	HardDeadline time.Duration
	// HardDeadlineChosen reports whether Options set it.
	HardDeadlineChosen bool
	// Sources that have not ended, in the order of their Watch.
	Sources []source.Snapshot
	// Queue statistics, as far as the queue has them.
	Queue workqueue.Stats
	// Outcomes counts finished reconciles by outcome.
	Outcomes map[Outcome]uint64
	// Failing counts the keys that Failures returns.
	Failing int
	// Findings counts what Controller.Findings returns, by each kind, without paused keys.
	Findings map[FindingKind]int
	// Overdue counts the reconciles that have passed the soft deadline.
	Overdue uint64
	// ReconcileTime is the histogram of finished reconciles.
	ReconcileTime workqueue.Histogram
	// Moves counts signs of progress of the workers: reconciles that began or ended,
	// and requests of a reconcile through the manager's configuration that were sent or
	// answered.
	Moves uint64
	// Recent are the intervals of the last ten minutes, the oldest first, but for those in which
	// nothing happened.
	Recent []Interval
	// LastEnded is when the last reconcile ended; zero: none has.
	LastEnded time.Time
	// Running reconciles, longest first.
	Running []Running
	// Pauses of SetPauses; do not modify them.
	Pauses Pauses
	// Singleton: one replica reconciles all keys; see Options.
	Singleton bool
	// OwnShards: Options.ShardBy decides the shards of its keys.
	OwnShards bool
	// Foreign counts the keys that were dropped because another replica has their shards.
	Foreign uint64
	// Woken counts the paused keys that run when they are resumed.
	Woken int
}

// Running is a reconcile in progress.
type Running struct {
	// Key as in the logs.
	Key string
	// ID is the reconcileID of the logs.
	ID string
	// Since is when it began.
	Since time.Time
}

// Snapshot copies the controller's state. It takes a few microseconds.
func (c *Controller[K]) Snapshot() Snapshot {
	now := time.Now()
	c.counters.recent.sample(c.queue, now)
	s := Snapshot{
		Name:          c.name,
		Workers:       len(c.watchdog.workers),
		HardDeadline:  c.watchdog.hard,
		Queue:         c.queue.Stats(),
		Outcomes:      make(map[Outcome]uint64, len(outcomes)),
		Failing:       c.failures.count(),
		Overdue:       c.counters.overdue.Load(),
		ReconcileTime: c.counters.took.Histogram(),
		Running:       c.watchdog.running(),
		Moves:         c.counters.moves.Load(),
		Recent:        c.counters.recent.intervals(now),

		HardDeadlineChosen: c.hardChosen,
		Singleton:          c.singleton,
		OwnShards:          c.shardBy != nil,
		Foreign:            c.sharded.foreign.Load(),
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
	s.Findings = make(map[FindingKind]int, len(findingKinds))
	for _, kind := range findingKinds {
		s.Findings[kind] = 0
	}
	s.Pauses, s.Woken = c.paused()
	keys, found := c.starving.join(c.recorder.found(now))
	for i, f := range found {
		if !c.some.Load() || s.Pauses.Of(keyText(keys[i])) == nil {
			s.Findings[f.Kind]++
		}
	}
	for i, o := range outcomes {
		s.Outcomes[o] = c.counters.outcome[i].Load()
	}
	for _, src := range c.sources.all() {
		s.Sources = append(s.Sources, source.SnapshotOf(src))
	}
	return s
}

// Stacks returns the stacks of the reconciles that have been running since before a
// time, by ID. If there are any, it briefly stops the whole process, so call it only to
// diagnose a problem.
func (c *Controller[K]) Stacks(before time.Time) map[string]string {
	return c.watchdog.stacks(before)
}

// Failures returns the last errors of the keys that are retried with backoff, in no
// order. A key is removed when a reconcile of it ends otherwise; a terminal error is
// not retried and only logged. A key that is not equal to itself (a NaN) is never in it.
// Failures copies all under a lock; Snapshot has the
// numbers of outcomes.
func (c *Controller[K]) Failures() []Failure[K] { return c.failures.all() }

// Runs returns the last runs of key that have ended, the newest last, as far as Options.RecordRuns
// and RecordBytes keep them. Nil: none is recorded, as before Run and after its end. It copies
// them under a lock that each run takes for a moment. A key that is not equal to itself (a NaN)
// has none.
func (c *Controller[K]) Runs(key K) []PastRun { return c.recorder.runs(key) }

// RunsOf is Runs for code that does not know the type of the keys: key is one as in the logs. It
// compares it with each recorded key.
func (c *Controller[K]) RunsOf(key string) []PastRun {
	if k, ok := c.recorder.find(key); ok {
		return c.Runs(k)
	}
	return nil
}

// Findings returns what is wrong with the runs of keys, the longest first: keys that wake themselves,
// that fight with another client, that write without effect, that fail in one way for an hour, or
// that others are preferred to. A finding ends with the run that no longer shows it. Windows are of
// up to 8 runs, so that a smaller Options.RecordRuns finds less.
func (c *Controller[K]) Findings() []Finding {
	keys, all := c.starving.join(c.recorder.found(time.Now()))
	for i, key := range keys {
		all[i].Key = keyText(key) // a function of the user's, which must not run under a lock
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// RecordedKeys returns a page of the keys that have past runs. It reads a few hundred keys under one
// lock, so that 100,000 keys delay no reconcile: keys that are new meanwhile are missing.
func (c *Controller[K]) RecordedKeys(q KeysQuery) KeysPage { return c.recorder.page(q) }
