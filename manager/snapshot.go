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
	"github.com/flyball-dev/flyball/internal/ownership"
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
	RunWaiting RunState = "waiting" // for its stage to start, or to run on the one replica that runs it
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
	// Sharing of the work among replicas. Nil: there is none.
	Sharing *SharingSnapshot
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

// SharingSnapshot is how the replicas of a Deployment share its objects, as one of them sees it.
type SharingSnapshot struct {
	// Identity of this replica.
	Identity string
	// Plan is the number of shards and what divides objects, such as 32/uid.
	Plan string
	// Waits is why this replica takes no shards, such as replicas with another number of them. Empty: it
	// does.
	Waits string
	// Replicas that live, by name.
	Replicas []ReplicaSnapshot
	// Shards, by number.
	Shards []ShardSnapshot
	// Moves are the last shards that this replica has taken, the oldest first.
	Moves []MoveSnapshot
	// Requests for Leases that were answered, by purpose, such as renew or claim.
	Requests map[string]uint64
	// Refused counts the writes of controllers that were refused or cancelled because this replica could
	// not trust that it holds the shard.
	Refused uint64
}

// ReplicaSnapshot is one replica.
type ReplicaSnapshot struct {
	Name string
	// Address of its console. Empty: not known.
	Address string
	Weight  int
	// Leaving: it gives its shards away and ends.
	Leaving bool
	// Plan that it has; replicas with another one than most hold no shards.
	Plan string
	// Shards is how many it holds.
	Shards int
	// Me: it is this process.
	Me bool
}

// ShardSnapshot is one shard.
type ShardSnapshot struct {
	Shard int
	// Holder is the name of the replica that holds it. Empty: none does.
	Holder string
	// Next is the replica to which it is to move. Empty: none.
	Next string
	// Stage of it on this replica: claimed, held, draining or empty, which is elsewhere.
	Stage string
	// Since is when this replica saw its last move, or began to drain it. Zero: not yet.
	Since time.Time
}

// MoveSnapshot is a shard that this replica has taken.
type MoveSnapshot struct {
	At       time.Time
	Shard    int
	From, To string // names of replicas; empty: none
	// Planned: the replica before has given it away. Otherwise that has ended without, or somebody has
	// changed the Lease.
	Planned bool
	// Took is how long the informers took to have what the replica before wrote.
	Took time.Duration
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
	if m.replicas != nil {
		s.Sharing = sharingOf(m.replicas.agent.State())
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

// sharingOf returns the state of replicas that share objects.
func sharingOf(s ownership.State) *SharingSnapshot {
	out := &SharingSnapshot{Identity: s.Identity, Plan: s.Plan, Waits: s.Waits, Requests: s.Requests, Refused: s.Refused}
	for _, m := range s.Members {
		out.Replicas = append(out.Replicas, ReplicaSnapshot(m))
	}
	for _, one := range s.Shards {
		out.Shards = append(out.Shards, ShardSnapshot(one))
	}
	for _, m := range s.Moves {
		out.Moves = append(out.Moves, MoveSnapshot(m))
	}
	return out
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
			switch {
			case m.replicas != nil:
				return health.Election(m.replicas.agent.Progress()), true
			case m.elector != nil:
				return health.Election(m.elector.Progress()), true
			}
			return health.Election{}, false
		},
		Running: func() bool {
			phase, _ := m.life.phase()
			return phase == PhaseRunning
		},
	}
}
