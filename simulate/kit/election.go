// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// lease returns the lease of the leader election as namespace/name; empty: there is no
// election.
func (cfg Config) lease() string {
	e := cfg.Manager.LeaderElection
	if e == nil || e.Off || cfg.sharing() != nil {
		return ""
	}
	return kube.Key{Namespace: e.Namespace, Name: e.ID}.String()
}

// unguarded returns the kinds that a process may write without leading.
func (cfg Config) unguarded() []string {
	if cfg.lease() == "" {
		return nil
	}
	return append([]string{leases, "Event", "Event.events.k8s.io"}, cfg.Unguarded...)
}

// standsBy reports whether the process waits to be elected: the queues of its
// controllers wait with it, unless they work on every replica.
func (p *process) standsBy() bool { return p.w.cfg.lease() != "" && !p.leads() }

// works reports whether a controller's workers have taken up any key.
func (p *process) works(controller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.works[controller]
}

// leads reports whether the process believes that it holds the lease.
func (p *process) leads() bool {
	if p.outside != nil {
		return p.w.record.holder() == p.name
	}
	s, ok := p.snapshot()
	return ok && s.Leadership.Leading
}

// leaderless describes a missing leader, or shards that nobody holds; empty: there is one, or no election,
// and all are held.
func (w *World) leaderless() string {
	if sharing := w.cfg.sharing(); sharing != nil {
		held := 0
		for _, p := range w.programs.running() {
			if s, ok := p.snapshot(); ok && s.Sharing != nil {
				for _, one := range s.Sharing.Shards {
					if one.Stage == "held" && one.Next == "" {
						held++
					}
				}
			}
		}
		if held < sharing.Count {
			return fmt.Sprintf("of %d shards %d are held and stay", sharing.Count, held)
		}
		return ""
	}
	lease := w.cfg.lease()
	if lease == "" || slices.ContainsFunc(w.programs.running(), (*process).leads) {
		return ""
	}
	return "no process holds Lease " + lease
}

// inexact returns why another run of a seed may differ; empty: it may not.
func (cfg Config) inexact() string {
	if cfg.Inexact == "" && cfg.sharing() != nil {
		return "replicas share objects: the informers of a process ask for a shard that has moved in any order"
	}
	return cfg.Inexact
}

// sharing returns how replicas share objects; nil: they do not.
func (cfg Config) sharing() *sharing {
	e, s := cfg.Manager.LeaderElection, cfg.Manager.Sharding
	if e == nil || e.Off || s == nil || s.Shards == 0 {
		return nil
	}
	by := shards.By(s.By)
	if by == "" {
		by = shards.UID
	}
	return &sharing{Lease: kube.Key{Namespace: e.Namespace, Name: e.ID}.String(), By: by, Count: s.Shards}
}
