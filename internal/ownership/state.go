// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

// mostMoves is how many moves are kept.
const mostMoves = 128

// Move is a shard that has come to be held by this process.
type Move struct {
	At       time.Time
	Shard    int
	From, To string // identities; empty: nobody
	// Planned: the owner before has given it away. Otherwise it has ended, or its Lease was changed by
	// hand.
	Planned bool
	// Took is how long the informers took to catch up.
	Took time.Duration
}

// MemberState is a member as one process sees it.
type MemberState struct {
	Name, Address string
	Weight        int
	Leaving       bool
	Plan          string
	Shards        int // that it holds
	Me            bool
}

// ShardState is a shard as one process sees it.
type ShardState struct {
	Shard  int
	Holder string // empty: nobody
	// Next is to whom the shard is to move; empty: nobody.
	Next string
	// Stage of this process's work: claimed, held, draining or empty.
	Stage string
	Since time.Time // when this process saw the last change, or began to drain it
}

// State is the division as one process sees it.
type State struct {
	Identity string
	Plan     string
	// Waits is why this process takes no shards. Empty: it does.
	Waits    string
	Members  []MemberState // that live, by name
	Shards   []ShardState
	Moves    []Move // to this process, the oldest first
	Requests map[string]uint64
	Refused  uint64
}

// troubleAfter is how long a process may be without its Leases before it is not ready.
const troubleAfter = 2 * time.Minute

// Trouble returns why this process cannot take part, if it could not for two minutes: the server forbids
// it, or does not list the Leases. An outage of the server is no trouble of this process.
func (a *Agent) Trouble() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.mu.running && !a.mu.world.synced && now.Sub(a.mu.begun) >= troubleAfter {
		return fmt.Errorf("the Leases of namespace %q have not been listed since %s; is the verb list, and watch, allowed in its Role?", a.Namespace, a.mu.begun.Format(time.RFC3339))
	}
	return a.mu.trouble(now)
}

// Progress shows whether an Agent makes progress.
type Progress struct {
	Lease       string
	Tries       uint64              // requests that were answered, or failed
	Campaigning bool                // it has listed the Leases, and sends requests
	Watch       []informer.Progress // of the Leases

	LeaseDuration time.Duration
}

// Progress returns the progress of the agent and its watch.
func (a *Agent) Progress() Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := Progress{Lease: a.Namespace + "/" + a.ID, Campaigning: a.mu.running && a.mu.world.synced, Watch: a.watched.Progress(), LeaseDuration: a.LeaseDuration}
	for _, n := range a.mu.requests {
		p.Tries += n
	}
	return p
}

// State returns the division as this process sees it.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	me, w := &a.mu.me, &a.mu.world
	out := State{
		Identity: me.identity, Plan: a.plan().String(), Waits: a.mu.waits,
		Moves: slices.Clone(a.mu.moves), Requests: maps.Clone(a.mu.requests), Refused: a.gate.Refused(),
	}
	count := map[string]int{}
	for s := range a.Count {
		l := w.shards[s]
		one := ShardState{Shard: s, Holder: l.holder(), Stage: me.shards[s].String()}
		if l != nil {
			one.Since = l.since
		}
		if one.Stage == ShardDraining {
			one.Since = a.guard.drainsSince(s)
		}
		if a.mu.owners != nil && a.mu.owners[s] != one.Holder {
			one.Next = a.mu.owners[s]
		}
		count[one.Holder]++
		out.Shards = append(out.Shards, one)
	}
	for name, m := range w.members {
		if m.holder() == "" {
			continue
		}
		out.Members = append(out.Members, MemberState{
			Name: name, Address: m.annotation(addressAnnotation), Weight: m.weight(), Leaving: m.annotation(stateAnnotation) == stateLeaving,
			Plan: m.annotation(planAnnotation), Shards: count[name], Me: name == me.identity,
		})
	}
	slices.SortFunc(out.Members, func(x, y MemberState) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

func (s stage) String() string {
	switch s {
	case claimed:
		return "claimed"
	case working:
		return ShardHeld
	case emptying, emptied, releasing:
		return ShardDraining
	}
	return ""
}
