// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// HealthHandler is what the health server serves, for tests that have no
// network.
func (m *Manager) HealthHandler() http.Handler { return m.healthHandler() }

// FindIn is FindConfig with places of the test's own.
func FindIn(environ, home string, inCluster func() (*rest.Config, error), kubeconfig, context string) (*rest.Config, error) {
	return places{environ: environ, home: home, inCluster: inCluster}.find(kubeconfig, context)
}

// NewLogger is the logger of the zero Options, with another place to write to.
func NewLogger(w io.Writer, verbosity int) logr.Logger { return newLogger(w, verbosity) }

// Complete fills in the defaults as New does.
func (o *Options) Complete() error { return o.complete() }
