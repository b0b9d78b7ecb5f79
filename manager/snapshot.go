// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/health"
	"github.com/flyball-dev/flyball/reconcile"
)

// Phase is where a manager stands in its life.
type Phase string

// The phases, in their order.
const (
	PhaseNew      Phase = "new"
	PhaseRunning  Phase = "running"
	PhaseStopping Phase = "stopping"
	PhaseStopped  Phase = "stopped"
)

// RunState is where a Runnable stands.
type RunState string

// The states of a Runnable, in their order.
const (
	RunWaiting RunState = "waiting" // for its stage to start
	RunRunning RunState = "running"
	RunEnded   RunState = "ended"
)

// Snapshot is a manager at one moment.
type Snapshot struct {
	Phase Phase
	// Since when the phase lasts.
	Since time.Time
	// Leadership is where this process stands in the election. Zero: there is none.
	Leadership LeadershipSnapshot
	// Stages in the order of their start.
	Stages []StageSnapshot
	// Informers in the order they were asked for, and Controllers in the order
	// they were added.
	Informers   []informer.Snapshot
	Controllers []reconcile.Snapshot
	// MetricsAddr and HealthAddr that are listened on; empty: none.
	MetricsAddr, HealthAddr string
}

// LeadershipSnapshot is an election as one process sees it.
type LeadershipSnapshot struct {
	// Lease by which it is decided, as namespace/name.
	Lease string
	// Identity of this process in it; empty before it takes part.
	Identity string
	// Leading: this process holds the lease, as far as it knows.
	Leading bool
	// Holder that the lease was last seen to have; empty: none.
	Holder string
}

// StageSnapshot is one stage at one moment.
type StageSnapshot struct {
	Stage     Stage
	Runnables []RunnableSnapshot
}

// RunnableSnapshot is one Runnable at one moment.
type RunnableSnapshot struct {
	Name  string
	State RunState
	// Since when the state holds.
	Since time.Time
	// Err that ended it; nil: none.
	Err error
}

// Snapshot says where the manager and all that it runs stand.
func (m *Manager) Snapshot() Snapshot {
	s := Snapshot{
		Informers:   m.allInformers(),
		Controllers: m.allControllers(),
		MetricsAddr: m.MetricsAddr(),
		HealthAddr:  m.HealthAddr(),
	}
	s.Phase, s.Since = m.phase()
	if m.elector != nil {
		s.Leadership = LeadershipSnapshot(m.elector.State())
	}
	for _, g := range m.groups {
		stage := StageSnapshot{Stage: g.stage}
		for _, r := range g.snapshot() {
			stage.Runnables = append(stage.Runnables, RunnableSnapshot{Name: r.name, State: r.state, Since: r.since, Err: r.err})
		}
		s.Stages = append(s.Stages, stage)
	}
	return s
}

// String is the start order as a table, with each list and watch beneath the
// stages.
func (s Snapshot) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	row("STAGE", "NAME", "STATE")
	for i, stage := range s.Stages {
		for _, r := range stage.Runnables {
			state := string(r.State)
			if r.Err != nil {
				state += ": " + r.Err.Error()
			}
			row(fmt.Sprintf("%d %s", i+1, stage.Stage), r.Name, state)
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

// members are the Runnables of all stages.
func (m *Manager) members() []member {
	var out []member
	for _, g := range m.groups {
		out = append(out, g.snapshot()...)
	}
	return out
}

// allInformers are the factory's and those that were added.
func (m *Manager) allInformers() []informer.Snapshot {
	out := m.informers.Snapshot()
	for _, r := range m.members() {
		if i, ok := r.runnable.(lonelyInformer); ok {
			out = append(out, i.Snapshot())
		}
	}
	return out
}

func (m *Manager) allControllers() []reconcile.Snapshot {
	var out []reconcile.Snapshot
	for _, r := range m.members() {
		if c, ok := r.runnable.(controller); ok {
			out = append(out, c.Snapshot())
		}
	}
	return out
}

// subjects are what must progress, of which /livez tells.
func (m *Manager) subjects() health.Subjects {
	return health.Subjects{
		Controllers: func() []health.Controller {
			var out []health.Controller
			for _, r := range m.members() {
				if c, ok := r.runnable.(controller); ok {
					out = append(out, c)
				}
			}
			return out
		},
		Informers: m.allProgress,
		Election: func() (election.Progress, bool) {
			if m.elector == nil {
				return election.Progress{}, false
			}
			return m.elector.Progress(), true
		},
		Running: func() bool {
			phase, _ := m.phase()
			return phase == PhaseRunning
		},
	}
}

// allProgress is that of the factory's informers and of those that were added.
func (m *Manager) allProgress() []informer.Progress {
	out := m.informers.Progress()
	for _, r := range m.members() {
		if i, ok := r.runnable.(progressing); ok {
			out = append(out, i.Progress())
		}
	}
	return out
}
