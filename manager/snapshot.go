// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/reconcile"
)

// Phase of a manager's life.
type Phase string

// The phases, in order.
const (
	PhaseNew      Phase = "new"
	PhaseRunning  Phase = "running"
	PhaseStopping Phase = "stopping"
	PhaseStopped  Phase = "stopped"
)

// RunState is the state of a Runnable.
type RunState string

// The states of a Runnable, in order.
const (
	RunWaiting RunState = "waiting" // for its stage to start
	RunRunning RunState = "running"
	RunEnded   RunState = "ended"
)

// Snapshot is the state of a manager at one moment.
type Snapshot struct {
	Phase Phase
	// Since is the start of the phase.
	Since time.Time
	// Leadership of this process. Zero: there is no election.
	Leadership LeadershipSnapshot
	// Stages in the order of their start.
	Stages []StageSnapshot
	// Informers in the order of their first use, and Controllers in the order of Add.
	Informers   []state.Informer
	Controllers []reconcile.Snapshot
	// MetricsAddr and HealthAddr are the listening addresses; empty: none.
	MetricsAddr, HealthAddr string
}

// LeadershipSnapshot is an election as one process sees it.
type LeadershipSnapshot struct {
	// Lease of the election, as namespace/name.
	Lease string
	// Identity of this process in it; empty before it takes part.
	Identity string
	// Leading reports whether this process believes that it holds the lease.
	Leading bool
	// Holder last seen in the lease; empty: none.
	Holder string
	// Since is when the Holder took the lease, by its clock. Zero: not known.
	Since time.Time
	// Refused is why the server refuses each of this process's requests for the lease,
	// since RefusedSince, as without the right to update Leases. Nil: it does not.
	Refused      error
	RefusedSince time.Time
}

// StageSnapshot is the state of one stage.
type StageSnapshot struct {
	Stage     Stage
	Runnables []RunnableSnapshot
}

// RunnableSnapshot is the state of one Runnable.
type RunnableSnapshot struct {
	Name  string
	State RunState
	// Since is the start of the state.
	Since time.Time
	// Err that ended it; nil: none.
	Err error
}

// Snapshot returns the state of the manager and of everything it runs.
func (m *Manager) Snapshot() Snapshot {
	s := Snapshot{
		Informers:   m.informerStates(),
		Controllers: m.runnables.controllers(),
		MetricsAddr: m.MetricsAddr(),
		HealthAddr:  m.HealthAddr(),
	}
	s.Phase, s.Since = m.life.phase()
	if m.elector != nil {
		s.Leadership = LeadershipSnapshot(m.elector.State())
	}
	for _, g := range m.runnables.groups {
		stage := StageSnapshot{Stage: g.stage}
		for _, r := range g.snapshot() {
			stage.Runnables = append(stage.Runnables, RunnableSnapshot{Name: r.name, State: r.state, Since: r.since, Err: r.err})
		}
		s.Stages = append(s.Stages, stage)
	}
	return s
}

// String returns a table in start order, with each list and watch below the stages.
func (s Snapshot) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	row("STAGE", "NAME", "STATE")
	for i, stage := range s.Stages {
		for _, r := range stage.Runnables {
			current := string(r.State)
			if r.Err != nil {
				current += ": " + r.Err.Error()
			}
			row(fmt.Sprintf("%d %s", i+1, stage.Stage), r.Name, current)
		}
	}
	for _, i := range s.Informers {
		for _, scope := range i.Scopes {
			row("watch", i.Kind.GroupKind().String(), scope.String())
		}
	}
	_ = table.Flush() // to memory
	return text.String()
}

// subjects returns what must make progress for /livez.
func (m *Manager) subjects() health.Subjects {
	return health.Subjects{
		Controllers: m.runnables.workers,
		Informers:   m.runnables.progress,
		Election: func() (health.Election, bool) {
			if m.elector == nil {
				return health.Election{}, false
			}
			return health.Election(m.elector.Progress()), true
		},
		Running: func() bool {
			phase, _ := m.life.phase()
			return phase == PhaseRunning
		},
	}
}
