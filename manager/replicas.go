// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/metrics"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/actions"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// replicas is this process among the replicas of its Deployment that share the work.
type replicas struct {
	agent    *ownership.Agent
	informed *informer.SharedInformerFactory
	recorder *election.Recorder
	begun    bool
}

// share returns this process as one of the replicas. recorder knows what is written by guarded clients.
// controllers are those that run.
func share(opts *Options, cfg *rest.Config, informers *informer.SharedInformerFactory, recorder *election.Recorder, controllers func() []reconcile.Snapshot, pauses *actions.Pauses) (*replicas, error) {
	r := &replicas{informed: informers, recorder: recorder}
	e, s := opts.LeaderElection, opts.Sharding
	var err error
	with := ownership.Options{
		ID: e.ID, Namespace: e.Namespace, Identity: e.Identity, Program: program(), By: shards.By(s.By), Count: s.Shards,
		Weight: max(s.Weight, 1), Address: s.Address, LeaseDuration: e.LeaseDuration, RetryPeriod: e.RetryPeriod,
		Informers: informers, Written: func(int) map[schema.GroupKind]kube.Version { return recorder.Known() }, CatchUp: r.catchUp,
	}
	if host, err := os.Hostname(); err == nil && inPod() {
		with.Pod = host
	}
	if pauses != nil {
		with.Sign, with.Shown = pauses.Sign, pauses.Learn
	}
	if r.agent, err = ownership.New(with, cfg, opts.Logger); err != nil {
		return nil, err
	}
	return r, informers.Divide(s.Shards, func(kind schema.GroupKind) string { return string(dividedBy(kind, shards.By(s.By), controllers())) })
}

// dividedBy returns what decides the shard of a kind's objects; empty: each replica has all. By UID an
// object must be where the one controller that uses it looks for it.
func dividedBy(kind schema.GroupKind, by shards.By, controllers []reconcile.Snapshot) shards.By {
	uses := map[shards.By]bool{}
	for _, c := range controllers {
		for _, s := range c.Sources {
			switch {
			case s.Kind != kind:
			case c.Singleton:
				return ""
			case s.Self:
				uses[shards.UID] = true
			case s.Controllers:
				uses[shards.Owner] = true
			default:
				uses[""] = true
			}
		}
	}
	switch {
	case by == shards.Namespace:
		return by
	case len(uses) != 1:
		return ""
	case uses[shards.UID]:
		return shards.UID
	case uses[shards.Owner]:
		return shards.Owner
	}
	return ""
}

// program returns the name of the program, which all its versions have.
func program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return path.Clean(info.Path)
	}
	return "unknown"
}

// catchUp makes the informers have what the owners of shards before wrote.
func (r *replicas) catchUp(ctx context.Context, taken []ownership.Taken) error {
	if !r.begun {
		r.begun = true
		r.recorder.Begin()
	}
	waited, lists, behind := r.recorder.CatchUp(ctx, r.informed, func(kind schema.GroupKind) informer.Floor {
		var floor informer.Floor
		for _, t := range taken {
			v, known := t.Written[kind]
			floor.Version = max(floor.Version, v)
			floor.Present = floor.Present || !known || !t.Released
		}
		return floor
	})
	if len(behind) > 0 {
		return fmt.Errorf("informers are behind: %s", strings.Join(behind, "; "))
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("The informers have what was written to shards before", "taken", len(taken), "waitedFor", waited, "lists", lists)
	return nil
}

// snapshot returns the state as this replica sees it.
func (r *replicas) snapshot() *SharingSnapshot {
	s := r.agent.State()
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

// describe returns s as package inspect describes it.
func (r *replicas) describe(s *SharingSnapshot) *inspect.Sharing {
	agent := r.agent
	out := &inspect.Sharing{
		Lease: agent.Namespace + "/" + agent.ID, Identity: s.Identity, Plan: s.Plan, LeaseSeconds: agent.LeaseDuration.Seconds(),
		Waits: s.Waits, Refused: s.Refused,
	}
	for _, one := range s.Replicas {
		out.Replicas = append(out.Replicas, inspect.Replica(one))
	}
	for _, one := range s.Shards {
		out.Shards = append(out.Shards, inspect.Shard{Shard: one.Shard, Holder: one.Holder, Next: one.Next, Stage: one.Stage, Since: one.Since})
	}
	for _, move := range s.Moves {
		out.Moves = append(out.Moves, inspect.Move{
			At: move.At, Shard: move.Shard, From: move.From, To: move.To, Reason: inspect.ReasonOf(move.From, move.Planned), TookSeconds: move.Took.Seconds(),
		})
	}
	return out
}

func (r *replicas) metrics() metrics.Sharing {
	s := r.agent.State()
	out := metrics.Sharing{Lease: r.agent.ID, Replicas: len(s.Members), Waits: s.Waits != "", Shards: map[string]int{}, Requests: s.Requests, Refused: s.Refused}
	for _, one := range s.Shards {
		if out.Shards[one.Stage]++; one.Holder == "" {
			out.Unheld++
		}
	}
	return out
}

// alone returns one as a Runnable that runs on the replica that holds shard 0, whenever that is this one.
func (r *replicas) alone(one Runnable) Runnable {
	return RunnableFunc(func(ctx context.Context) error {
		changed := make(chan struct{}, 1)
		defer r.agent.Guard().Changed(func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})()
		for {
			if again, err := r.runAlone(ctx, one); !again {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// runAlone runs one if this process holds shard 0, until it does not any more. again: it is to run when
// that is held again.
func (r *replicas) runAlone(ctx context.Context, one Runnable) (again bool, err error) {
	guard := r.agent.Guard()
	in, leave, _ := guard.Enter(ctx, 0)
	if leave == nil {
		return true, nil
	}
	defer leave()
	in, end := context.WithCancel(in)
	defer end()
	endUnlessHeld := func() {
		if !guard.Works(0) {
			end()
		}
	}
	defer guard.Changed(endUnlessHeld)()
	endUnlessHeld()
	err = guarded(in, one)
	if ctx.Err() == nil && in.Err() != nil {
		return true, nil
	}
	return false, err
}
