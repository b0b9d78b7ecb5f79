// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/histogram"
)

// outcomes in the order of their counters.
var outcomes = [...]Outcome{
	OutcomeDone, OutcomeAfter, OutcomeRetry, OutcomeConflict, OutcomeError,
	OutcomeTerminal, OutcomePanic, OutcomeTimeout, OutcomeStopped,
}

// bounds of the reconcile times: a subset of those that dashboards expect, and two
// above them for the deadlines.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// counters only increase.
type counters struct {
	outcome [len(outcomes)]atomic.Uint64
	overdue atomic.Uint64
	moves   atomic.Uint64
	took    histogram.Recorder
	last    atomic.Int64 // nanoseconds since 1970
	recent  recent
}

// Moved counts a sign of progress of a worker.
func (c *counters) Moved() { c.moves.Add(1) }

// observe counts a reconcile that took d and has just ended.
func (c *counters) observe(o Outcome, d time.Duration) {
	now := time.Now()
	c.took.Observe(d)
	c.last.Store(now.UnixNano())
	c.recent.count(o, now)
	c.outcome[slices.Index(outcomes[:], o)].Add(1)
}
