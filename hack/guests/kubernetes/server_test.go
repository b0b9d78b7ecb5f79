// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

// server is an API server that can be killed.
type server interface {
	Config() *rest.Config
	// restart kills the server, drops the history of its store, and starts it again.
	restart(t *testing.T)
}

// real is etcd and kube-apiserver.
type real struct{ *envtest.Environment }

func startReal(t *testing.T) server {
	t.Helper()
	env, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return real{env}
}

func (r real) restart(t *testing.T) {
	t.Helper()
	if err := r.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := r.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// simulated is a server in this process without actors, which keeps its objects in a
// directory.
type simulated struct {
	*simulate.Loopback
	data string
	end  func()
}

func startSimulated(t *testing.T) server {
	t.Helper()
	s := &simulated{data: t.TempDir()}
	s.start(t)
	t.Cleanup(func() { s.end() })
	return s
}

func (s *simulated) start(t *testing.T) {
	t.Helper()
	l, err := simulate.Listen(simulate.ListenOptions{Data: s.data, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	s.Loopback, s.end = l, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (s *simulated) restart(t *testing.T) {
	t.Helper()
	s.end()
	s.start(t)
	s.Server().Compact()
}
