// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"

	"github.com/flyball-dev/flyball/internal/metrics"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager/internal/actions"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/manager/internal/serving"
)

func (m *Manager) observe(opts Options) error {
	from := metrics.Sources{
		Controllers: m.runnables.controllers,
		Informers:   m.informerStates,
		Scopes:      opts.MetricsScopes,
		Webhooks:    m.webhookServer,
		Events:      m.mail.Counts,
		Requests:    m.requests,
	}
	if m.elector != nil {
		from.Leader = func() metrics.Leader {
			return metrics.Leader{Lease: opts.LeaderElection.ID, Leading: m.elector.State().Leading, Refused: m.elector.Refused()}
		}
	}
	if m.replicas != nil {
		from.Sharing = m.replicas.metrics
	}
	return from.Register(m.registry)
}

func (m *Manager) metricsHandler(opts Options) (http.Handler, error) {
	as := opts.MetricsServing
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Scrapes(m.registry, m.log))
	if as.Profiling {
		serving.Profiles(mux)
	}
	program, pages := inspect.Program(inspected{m}), http.Handler(nil)
	if as.Actions {
		program = inspected{m}.actor(opts)
	}
	if as.Guard || isLoopback(opts.MetricsAddress) { // keys and errors are not for everyone
		mux.Handle("GET "+inspect.Path, inspect.Handler(program))
		mux.Handle("GET "+recordingPath, m.windows.Handler(recording.Options{Redact: opts.Record.Redact, Decode: opts.Record.options(m.scheme).Decode}))
	}
	if as.Console != nil {
		pages = as.Console(program)
		mux.Handle("GET "+inspect.Root, pages)
	}
	if actor, ok := program.(*actions.Actor); ok {
		mux.Handle("POST "+inspect.Root, actor.Handler(pages))
	}
	if !as.Guard {
		return mux, nil
	}
	return serving.NewGuard(m.standbyConfig, m.log.WithValues("server", "metrics"), withUser(mux))
}

// withUser passes on whom the guard has authorized.
func withUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(inspect.WithUser(r.Context(), serving.UserOf(r.Context()))))
	})
}
