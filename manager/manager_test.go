// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// newManager returns a manager without servers and without an API server, for a bubble.
func newManager(t *testing.T, opts manager.Options) *manager.Manager {
	t.Helper()
	if opts.Config == nil {
		opts.Config = &rest.Config{Host: "http://127.0.0.1:1"}
	}
	if opts.MetricsAddress == "" {
		opts.MetricsAddress = "0"
	}
	if opts.HealthAddress == "" {
		opts.HealthAddress = "0"
	}
	opts.Logger = quiet()
	m, err := manager.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quiet drops all lines. The zero logger would write to stderr.
func quiet() logr.Logger { return funcr.New(func(string, string) {}, funcr.Options{}) }

// run runs m in the background. wait stops it and returns the result of Run.
func run(t *testing.T, m *manager.Manager) (stop context.CancelFunc, wait func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- m.Run(ctx) })
	return stop, func() error {
		wg.Wait()
		return <-done
	}
}

func probe(m *manager.Manager, path string) (code int, text string) {
	w := httptest.NewRecorder()
	m.HealthHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
