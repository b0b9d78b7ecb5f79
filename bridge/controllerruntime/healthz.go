// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/health"
)

// The names of the checks. kube-apiserver has the first one too.
const (
	readyCheck = "informer-sync"
	liveCheck  = "informer-progress"
)

// AddHealthz adds the informers to the probes of mgr, whose cache must be of NewCache. Call it before mgr starts.
//
// The check informer-sync of /readyz fails until each informer that the cache has is synced. Its error names each list that is
// not, with its state and the server's reason. A kind that mgr itself converts does not count, since a process that is not
// ready receives no conversion requests. A synced informer stays ready while the server cannot be reached: taking
// every replica out of its Services would not help.
//
// The check informer-progress of /healthz fails while an event handler, a transform or an index function has not returned for
// two minutes and work waits for it. A restart fixes that. Time in which the process was frozen does not count. Its error has
// stacks.
//
// AddHealthz does not block. It returns an error if the cache is another one, or if mgr has started.
func AddHealthz(mgr ctrl.Manager) error {
	c, err := cacheOf(mgr)
	if err != nil {
		return fmt.Errorf("add the informers to the probes: %w", err)
	}
	p := pulse{c, health.NewPulse(health.DefaultStuckAfter, c.subjects())}
	for _, err := range []error{
		mgr.Add(p),
		mgr.AddReadyzCheck(readyCheck, func(r *http.Request) error { return failed(r.Context(), c.readyChecks(mgr)) }),
		mgr.AddHealthzCheck(liveCheck, func(r *http.Request) error { return failed(r.Context(), p.Checks()) }),
	} {
		if err != nil {
			return fmt.Errorf("add the informers to the probes: %w", err)
		}
	}
	return nil
}

// AddSnapshot serves the state of the informers of mgr as JSON at path of its metrics server, such as "/debug/informers":
// their kinds, each list and watch with its state and reason, their handlers. It contains no objects. The cache must
// be of NewCache. Call it before mgr starts. Like the metrics, it is open to all unless Metrics.FilterProvider is set.
func AddSnapshot(mgr ctrl.Manager, path string) error {
	c, err := cacheOf(mgr)
	if err != nil {
		return fmt.Errorf("serve the state of the informers: %w", err)
	}
	return mgr.AddMetricsServerExtraHandler(path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.MarshalIndent(map[string][]state.Informer{"informers": c.factory.Snapshot()}, "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(append(text, '\n'))
	}))
}

func cacheOf(mgr ctrl.Manager) (*kinds, error) {
	c, ok := mgr.GetCache().(*kinds)
	if !ok {
		return nil, fmt.Errorf("the manager's cache is a %T; give ctrl.NewManager the options that bridge.Options returns", mgr.GetCache())
	}
	return c, nil
}

// pulse is a Pulse as controller-runtime's Runnable.
type pulse struct {
	of *kinds
	*health.Pulse
}

// Start implements manager.Runnable.
func (p pulse) Start(ctx context.Context) error {
	p.Watch(ctx, p.of.log)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (pulse) NeedLeaderElection() bool { return false }

// subjects returns what must make progress.
func (c *kinds) subjects() health.Subjects {
	return health.Subjects{
		Controllers: func() []health.Controller { return nil },
		Informers:   c.factory.Progress,
		Election:    func() (health.Election, bool) { return health.Election{}, false },
		Running:     c.hasBegun,
	}
}

// readyChecks returns one check per kind.
func (c *kinds) readyChecks(mgr ctrl.Manager) []health.Check {
	all := c.factory.Snapshot()
	converted := map[schema.GroupKind]bool{}
	for _, i := range all {
		gk := i.Kind.GroupKind()
		_, registered := mgr.GetConverterRegistry().GetConverter(gk)
		converted[gk] = converted[gk] || registered
		if obj, err := c.Scheme.New(i.Kind); err == nil {
			hub, err := conversion.IsConvertible(c.Scheme, obj)
			converted[gk] = converted[gk] || err == nil && hub
		}
	}
	return health.InformerChecks(all, func(gk schema.GroupKind) bool { return converted[gk] })
}

// failed asks checks, and joins the errors that count.
func failed(ctx context.Context, checks []health.Check) error {
	var all []error
	for _, c := range checks {
		if err := c.Ask(ctx); err != nil && c.Passing == "" {
			all = append(all, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	return errors.Join(all...)
}
