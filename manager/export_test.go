// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/internal/guard"
	"github.com/flyball-dev/flyball/manager/internal/health"
)

// HealthHandler is what the health server serves, for tests that have no
// network.
func (m *Manager) HealthHandler() http.Handler { return health.Handler(m.readyChecks, m.liveChecks) }

// HealthServer is the health server without its port.
func (m *Manager) HealthServer() *http.Server { return m.health.HTTP(m.log) }

// Transports is how many transports are known to keep connections.
func (m *Manager) Transports() int { return m.requests.Transports() }

// NewGuard is a guard before next that asks the server of cfg, and how many answers
// it remembers.
func NewGuard(cfg *rest.Config, log logr.Logger, next http.Handler) (guarded http.Handler, remembers func() int, err error) {
	g, err := guard.New(cfg, log, next)
	if err != nil {
		return nil, nil, err
	}
	return g, g.Remembered, nil
}

// StuckAfter is how long something may stand still before /livez fails.
func (m *Manager) StuckAfter() time.Duration { return m.pulse.After }

// MetricsHandler is what the metrics server serves, unguarded.
func (m *Manager) MetricsHandler(as Serving) (http.Handler, error) { return m.metricsHandler(as) }

// FindIn is FindConfig with places of the test's own.
func FindIn(environ, home string, inCluster func() (*rest.Config, error), kubeconfig, context string) (*rest.Config, error) {
	return places{environ: environ, home: home, inCluster: inCluster}.find(kubeconfig, context)
}

// Complete fills in the defaults as New does.
func (o *Options) Complete() error { return o.complete() }

// ResourceOf is what a path of the API is about.
func ResourceOf(path string) string { return resourceOf(path) }
