// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 90 * time.Second
	maxHeader         = 16 << 10 // bytes; an API server sends a few hundred
	// closeTime bounds the answers in flight when the port closes. None takes longer
	// than the calling server waits.
	closeTime = longestAnswer + transferTime
)

// Run opens the port and serves until ctx has ended and Options.DrainDelay has passed
// since the stop began, then finishes the requests in flight and returns. The stop begins
// with Drain or the end of ctx. Run returns an error if the port is in use, if functions
// or options are invalid, or if the server has run before. A missing certificate is not an
// error of Run; Check reports it.
func (s *Server) Run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	listener, err := s.listen(ctx, s.opts.Address)
	if err != nil {
		return fmt.Errorf("listen on %q: %w; set another address in webhook.Options.Address, or with -webhook-bind-address", s.opts.Address, err)
	}
	logger := s.logger()
	if s.managed == nil {
		s.files().Look(logger)
	}
	s.opened(listener)
	close(s.started)

	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	g, serving := errgroup.WithContext(serving)
	srv := s.server(serving, logger)
	g.Go(func() error {
		if err := srv.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve webhooks on %s: %w", listener.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		s.keep(serving, logger)
		return nil
	})
	g.Go(func() error {
		defer end()
		s.awaitDrain(ctx, serving, logger)
		moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if srv.Shutdown(moment) != nil {
			_ = srv.Close()
		}
		return nil
	})
	return g.Wait()
}

func (s *Server) begin(ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ran {
		return errors.New("run webhook server: it is running or has already run; make a new one")
	}
	s.mu.ran = true
	if s.mu.log.IsZero() {
		s.mu.log = textlog.Throttled(logr.FromContextOrDiscard(ctx))
	}
	return nil
}

func (s *Server) opened(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.addr = listener.Addr().String()
}

// keep maintains the certificate until ctx ends.
func (s *Server) keep(ctx context.Context, log logr.Logger) {
	if s.managed != nil {
		s.managed.keep(ctx, log)
		return
	}
	s.files().Keep(ctx, log)
}

// server returns the HTTP server. serving ends later than the context of Run.
func (s *Server) server(serving context.Context, logger logr.Logger) *http.Server {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.held.Serve}
	s.callers().ask(config)
	if s.opts.TLS != nil {
		s.opts.TLS(config)
	}
	// API servers call webhooks over HTTP/1.1. With HTTP/2, bodies would arrive before
	// the budget has room for them.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           s,
		TLSConfig:         config,
		Protocols:         protocols,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(logger.V(1)), slog.LevelInfo),
	}
}

// Drain begins a stop before Run's context ends: Options.DrainDelay counts from now. A
// manager calls it when it begins to stop. It does not block.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopping.IsZero() {
		s.mu.stopping = time.Now()
	}
}

func (s *Server) left(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.DrainDelay - now.Sub(s.mu.stopping)
}

// awaitDrain returns when the port must close: when ctx has ended and the drain delay has
// passed, or when serving ends.
func (s *Server) awaitDrain(ctx, serving context.Context, log logr.Logger) {
	select {
	case <-ctx.Done():
	case <-serving.Done():
		return
	}
	s.Drain()
	wait := s.left(time.Now())
	if wait <= 0 {
		return
	}
	log.Info("Serving webhooks during the drain delay", "for", wait.String())
	sleep.For(serving, wait)
}

func (s *Server) files() keypair.Files {
	return keypair.Files{Dir: s.opts.CertDir, Held: s.held, OwnOnly: s.opts.CertDir == DefaultCertDir()}
}
