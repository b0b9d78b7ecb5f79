// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/manager/internal/serving"
)

// HealthHandler returns the handler of the health server, for tests without a network.
func (m *Manager) HealthHandler() http.Handler { return health.Handler(m.readyChecks, m.liveChecks) }

// HealthServer returns the health server without its port.
func (m *Manager) HealthServer() *http.Server { return m.health.HTTP(m.log) }

// Transports returns the number of transports known to keep connections.
func (m *Manager) Transports() int { return m.requests.Transports() }

// NewGuard returns a guard before next that uses the server of cfg, and a function that
// counts its cached answers.
func NewGuard(cfg *rest.Config, log logr.Logger, next http.Handler) (guarded http.Handler, remembers func() int, err error) {
	g, err := serving.NewGuard(cfg, log, next)
	if err != nil {
		return nil, nil, err
	}
	return g, g.Remembered, nil
}

// StuckAfter returns how long a part may make no progress before /livez fails.
func (m *Manager) StuckAfter() time.Duration { return m.pulse.After }

// MetricsHandlerAt is MetricsHandler of a server at an address.
func (m *Manager) MetricsHandlerAt(address string, as Serving) (http.Handler, error) {
	return m.metricsHandler(Options{MetricsAddress: address, MetricsServing: as})
}

// MetricsHandler returns the handler of the metrics server, unguarded.
func (m *Manager) MetricsHandler(as Serving) (http.Handler, error) {
	return m.metricsHandler(Options{MetricsAddress: defaultMetricsAddress, MetricsServing: as})
}

// FindIn is FindConfig with places for the test.
func FindIn(environ, home string, inCluster func() (*rest.Config, error), kubeconfig, context string) (*rest.Config, error) {
	return places{environ: environ, home: home, inCluster: inCluster}.find(kubeconfig, context)
}

// Complete sets the defaults as New does.
func (o *Options) Complete() error { return o.complete() }

// ResourceOf exports resourceOf.
func ResourceOf(path string) string { return resourceOf(path) }
