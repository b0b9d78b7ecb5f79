// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// HealthHandler is what the health server serves, for tests that have no
// network.
func (m *Manager) HealthHandler() http.Handler { return m.healthHandler() }

// FindIn is FindConfig with places of the test's own.
func FindIn(environ, home string, inCluster func() (*rest.Config, error), kubeconfig, context string) (*rest.Config, error) {
	return places{environ: environ, home: home, inCluster: inCluster}.find(kubeconfig, context)
}

// Complete fills in the defaults as New does.
func (o *Options) Complete() error { return o.complete() }
