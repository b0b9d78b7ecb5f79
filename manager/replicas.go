// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/metrics"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/actions"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/reconcile"
)

// replicas is this process among the replicas of its Deployment that share the work.
type replicas struct {
	agent    *ownership.Agent
	informed *informer.SharedInformerFactory
	recorder *election.Recorder
	division *division
	begun    bool
	gaps     chan struct{} // has a token if a shard was released with a record that has gaps
}

// share returns this process as one of the replicas. recorder knows what is written by guarded clients.
// controllers are those that run.
func share(opts *Options, cfg *rest.Config, informers *informer.SharedInformerFactory, recorder *election.Recorder, controllers func() []reconcile.Snapshot, pauses *actions.Pauses) (*replicas, error) {
	r := &replicas{informed: informers, recorder: recorder, gaps: make(chan struct{}, 1)}
	e, s := opts.LeaderElection, opts.Sharding
	r.division = newDivision(shards.By(s.By), controllers)
	var err error
	with := ownership.Options{
		ID: e.ID, Namespace: e.Namespace, Identity: e.Identity, Program: ownership.Program(), By: shards.By(s.By), Count: s.Shards,
		Weight: max(s.Weight, 1), Address: s.Address, LeaseDuration: e.LeaseDuration, RetryPeriod: e.RetryPeriod,
		Informers: informers, Written: r.written, CatchUp: r.catchUp,
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
	return r, informers.Divide(s.Shards, r.division.of)
}

// written returns what was written to the objects of any shard: the newest version of each kind of
// which all is known.
func (r *replicas) written(int) map[schema.GroupKind]kube.Version {
	if len(r.recorder.Gaps()) > 0 {
		select {
		case r.gaps <- struct{}{}:
		default:
		}
	}
	return r.recorder.Known()
}

// fillGaps makes known what is not, after a shard was released without, until ctx ends: the next
// one is released with it.
func (r *replicas) fillGaps(ctx context.Context) {
	for {
		select {
		case <-r.gaps:
		case <-ctx.Done():
			return
		}
		bounded, cancel := context.WithTimeout(ctx, election.HandoverWithin)
		// Where a shard goes meanwhile, what the list has shown does not count.
		for pause := time.Second; !r.recorder.FillGaps(bounded, r.informed) && sleep.For(bounded, pause); pause *= 2 {
		}
		cancel()
	}
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
	log := logr.FromContextOrDiscard(ctx)
	r.division.log(log, r.informed.Snapshot())
	if len(behind) > 0 {
		return fmt.Errorf("informers are behind: %s", strings.Join(behind, "; "))
	}
	log.V(1).Info("The informers have what was written to shards before", "taken", len(taken), "waitedFor", waited, "lists", lists)
	return nil
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
