// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"

	"github.com/flyball-dev/flyball/informer"
)

// lease by which the processes elect who works, as namespace/name; empty: they do
// not.
func (cfg Config) lease() string {
	e := cfg.Manager.LeaderElection
	if e == nil || e.Off {
		return ""
	}
	return informer.Key{Namespace: e.Namespace, Name: e.ID}.String()
}

// unguarded are the kinds that a process writes without leading.
func (cfg Config) unguarded() []string {
	if cfg.lease() == "" {
		return nil
	}
	return append([]string{leases, "Event", "Event.events.k8s.io"}, cfg.Unguarded...)
}

// standsBy reports whether the process waits to be elected: what its controllers have
// in their queues is for that day, unless they work on every replica.
func (p *process) standsBy() bool { return p.w.cfg.lease() != "" && !p.leads() }

// works reports whether a controller's workers have taken anything up.
func (p *process) works(controller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.works[controller]
}

// leads reports whether the process holds the lease, as far as it knows.
func (p *process) leads() bool {
	s, ok := p.snapshot()
	return ok && s.Leadership.Leading
}

// leaderless says that nobody works; empty: somebody does, or no lease is needed for
// it.
func (w *World) leaderless() string {
	lease := w.cfg.lease()
	if lease == "" || slices.ContainsFunc(w.running(), (*process).leads) {
		return ""
	}
	return "nobody leads by Lease " + lease
}
