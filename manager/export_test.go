// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// NewInformerCollector exposes what read returns, with series for the most scopes.
func NewInformerCollector(read func() []informer.Snapshot, most int) prometheus.Collector {
	return informerCollector{newInformerMetrics(), read, most}
}

// HealthHandler is what the health server serves, for tests that have no
// network.
func (m *Manager) HealthHandler() http.Handler { return m.healthHandler() }

// HealthServer is the health server without its port.
func (m *Manager) HealthServer() *http.Server { return m.health.server(m.log) }

// Transports is how many transports are known to keep connections.
func (m *Manager) Transports() int {
	m.requests.mu.Lock()
	defer m.requests.mu.Unlock()
	return len(m.requests.mu.transports)
}

// NewGuard is a guard before next that asks the server of cfg, and how many answers
// it remembers.
func NewGuard(cfg *rest.Config, log logr.Logger, next http.Handler) (guarded http.Handler, remembers func() int, err error) {
	g, err := newGuard(cfg, log, next)
	if err != nil {
		return nil, nil, err
	}
	return g, func() int { return g.users.remembered() + g.allowed.remembered() }, nil
}

func (v *verdicts[V]) remembered() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.mu.known)
}

// MetricsHandler is what the metrics server serves, unguarded.
// StuckAfter is how long something may stand still before /livez fails.
func (m *Manager) StuckAfter() time.Duration { return m.pulse.after }

func (m *Manager) MetricsHandler(as Serving) (http.Handler, error) { return m.metricsHandler(as) }

// FindIn is FindConfig with places of the test's own.
func FindIn(environ, home string, inCluster func() (*rest.Config, error), kubeconfig, context string) (*rest.Config, error) {
	return places{environ: environ, home: home, inCluster: inCluster}.find(kubeconfig, context)
}

// Complete fills in the defaults as New does.
func (o *Options) Complete() error { return o.complete() }

// ResourceOf is what a path of the API is about.
func ResourceOf(path string) string { return resourceOf(path) }
