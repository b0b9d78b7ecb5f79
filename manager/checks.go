// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// AddReadyCheck adds a check to /readyz under a name. ask may be called by several
// requests at the same time; its context ends with the request. A panic of ask counts
// as a failure. It is an error if the name is empty or taken, or ask is nil.
func (m *Manager) AddReadyCheck(name string, ask func(ctx context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return health.Add(&m.mu.ready, name, ask)
}

// AddLiveCheck is AddReadyCheck for /livez and /healthz. If it fails, the kubelet
// restarts the process: check only conditions that a restart fixes.
func (m *Manager) AddLiveCheck(name string, ask func(ctx context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return health.Add(&m.mu.live, name, ask)
}

// readyChecks returns the checks of /readyz: the manager runs, and everything is
// synced.
func (m *Manager) readyChecks() []health.Check {
	checks := []health.Check{health.Answered("ping", nil), health.Answered("shutdown", m.life.stopping())}
	hooks := m.webhookServer()
	converted := func(kind schema.GroupKind) bool { return hooks != nil && hooks.Converts(kind) }
	checks = append(checks, health.InformerChecks(m.runnables.informers(), converted)...)
	for _, g := range m.runnables.groups {
		for _, r := range g.snapshot() {
			c, ok := syncCheck(r, converted)
			if !ok {
				continue
			}
			if m.elector != nil && g.stage == StageControllers && r.waits() {
				c.Passing = "it waits to lead"
			}
			if r.elsewhere() {
				c.Passing = "it runs on the replica that holds shard 0"
			}
			checks = append(checks, c)
			if c, ok := r.runnable.(Controller); ok {
				saturated := m.pulse.SaturationCheck(c, c.Snapshot())
				if m.readyWhenSaturated {
					saturated.Passing = "Options.ReadyWhenSaturated"
				}
				checks = append(checks, saturated)
			}
		}
	}
	if m.elector != nil {
		checks = append(checks, health.Answered("leader-election", candidacy(m.elector.State(), time.Now())))
	}
	if m.replicas != nil {
		checks = append(checks, health.Answered("replicas", m.replicas.agent.Trouble()))
	}
	if hooks != nil {
		checks = append(checks, health.Check{Name: "webhooks", Ask: hooks.Check})
		if errs := hooks.Snapshot().CABundleErrors; len(errs) > 0 {
			c := health.Answered("webhooks/ca-bundles", errors.Join(errs...))
			c.Passing = "the others are served"
			checks = append(checks, c)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(checks, m.mu.ready...)
}

// refusedFor is how long a candidate may be refused before it is not ready.
const refusedFor = 2 * time.Minute

// candidacy returns an error if the server has refused a candidate for too long. An outage
// is no refusal: no other replica would do better.
func candidacy(s election.State, now time.Time) error {
	if s.Refused == nil || s.Leading || now.Sub(s.RefusedSince) < refusedFor {
		return nil
	}
	return fmt.Errorf("this process cannot lead: the server refuses its requests for lease %s since %s: %w",
		s.Lease, s.RefusedSince.Format(time.RFC3339), s.Refused)
}

// waits reports whether r has not been run at all, not even as a standby.
func (r member) waits() bool {
	_, prepares := r.runnable.(Standby)
	return r.state == RunWaiting && !prepares
}

// syncCheck returns the check of a Runnable that has Synced. Informers have their own.
func syncCheck(r member, converted func(schema.GroupKind) bool) (health.Check, bool) {
	s, ok := r.runnable.(Synced)
	if _, isInformer := r.runnable.(Informer); !ok || isInformer {
		return health.Check{}, false
	}
	c, isController := r.runnable.(Controller)
	name := "sync/" + r.name
	if isController {
		name = "controller/" + c.Snapshot().Name
	}
	select {
	case <-s.Synced():
		return health.Answered(name, nil), true
	default:
	}
	err := fmt.Errorf("not synced: %s since %s", r.state, r.since.Format(time.RFC3339))
	if !isController {
		return health.Answered(name, err), true
	}
	waits := behind(c.Snapshot())
	var names []string
	for _, source := range waits {
		names = append(names, source.Source)
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w, waits for %s", err, strings.Join(names, ", "))
	}
	out := health.Answered(name, err)
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(s source.Snapshot) bool { return !converted(s.Kind) }) {
		out.Passing = health.ConvertedHere
	}
	return out, true
}

// behind returns the sources that s waits for.
func behind(s reconcile.Snapshot) []source.Snapshot {
	return slices.DeleteFunc(slices.Clone(s.Sources), func(s source.Snapshot) bool { return s.Synced || s.Optional })
}

// liveChecks returns the checks of /livez: everything makes progress, and no worker is
// lost.
func (m *Manager) liveChecks() []health.Check {
	checks := append([]health.Check{health.Answered("ping", nil)}, m.pulse.Checks()...)
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(checks, m.mu.live...)
}
