// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
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
	"github.com/flyball-dev/flyball/reconcile"
)

// replicas is this process among the replicas of its Deployment that share the work.
type replicas struct {
	agent    *ownership.Agent
	informed *informer.SharedInformerFactory
	recorder *election.Recorder
	division *division
	begun    bool
}

// share returns this process as one of the replicas. recorder knows what is written by guarded clients.
// controllers are those that run.
func share(opts *Options, cfg *rest.Config, informers *informer.SharedInformerFactory, recorder *election.Recorder, controllers func() []reconcile.Snapshot, pauses *actions.Pauses) (*replicas, error) {
	r := &replicas{informed: informers, recorder: recorder}
	e, s := opts.LeaderElection, opts.Sharding
	r.division = newDivision(shards.By(s.By), controllers)
	var err error
	with := ownership.Options{
		ID: e.ID, Namespace: e.Namespace, Identity: e.Identity, Program: ownership.Program(), By: shards.By(s.By), Count: s.Shards,
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
	return r, informers.Divide(s.Shards, r.division.of)
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
