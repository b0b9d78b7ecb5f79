// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 90 * time.Second
	closeTimeout      = 2 * time.Second // for answers in flight when a server stops
	mostHeader        = 64 << 10        // bytes, most of them for a token
)

// Options of a Server.
type Options struct {
	Name    string
	Address string
	Flag    string   // the flag that changes the address
	Hosts   []string // allowed on loopback, besides this machine's own
	Handler http.Handler

	Secure  bool              // over TLS
	CertDir string            // of the certificate; empty: self-signed in memory
	TLS     func(*tls.Config) // changes the TLS configuration; nil: none
}

// Server serves HTTP on one address.
type Server struct {
	opts    Options
	secure  certificates // maintains shown; nil: no TLS
	shown   keypair.Holder
	started chan struct{}

	mu struct {
		sync.Mutex
		addr string // the listening address
	}
}

// New returns a server. It opens no port.
func New(opts Options) *Server {
	s := &Server{opts: opts, started: make(chan struct{})}
	if opts.Secure {
		s.secure = certificatesOf(opts.CertDir, &s.shown)
	}
	return s
}

func (s *Server) Name() string { return s.opts.Name + " server" }

// Started is closed when the server listens.
func (s *Server) Started() <-chan struct{} { return s.started }

// Addr returns the listening address; empty before that and if s is nil.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.addr
}

// Run serves until ctx ends. Answers in flight have a moment to end.
func (s *Server) Run(ctx context.Context) error {
	listener, err := simhook.Listen(ctx, s.opts.Address)
	if err != nil {
		return fmt.Errorf("listen on %q: %w; set another address with -%s, or 0 to serve none", s.opts.Address, err, s.opts.Flag)
	}
	s.mu.Lock()
	s.mu.addr = listener.Addr().String()
	s.mu.Unlock()
	logger := textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("server", s.opts.Name)
	srv := s.HTTP(logger)
	if onLoopback(listener.Addr()) {
		srv.Handler = forLocalHosts(append([]string{hostOf(s.opts.Address)}, s.opts.Hosts...), srv.Handler)
	}
	serve := func() error { return srv.Serve(listener) }
	g, ctx := errgroup.WithContext(ctx)
	if s.secure != nil {
		s.secure.Look(logger)
		g.Go(func() error { s.secure.Keep(ctx, logger); return nil })
		srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.shown.Serve}
		if s.opts.TLS != nil {
			s.opts.TLS(srv.TLSConfig)
		}
		serve = func() error { return srv.ServeTLS(listener, "", "") }
	}
	close(s.started)
	g.Go(func() error {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if srv.Shutdown(moment) != nil {
			_ = srv.Close() // a slow client does not delay the stop
		}
		return nil
	})
	return g.Wait()
}

// HTTP returns the server that Run uses.
func (s *Server) HTTP(logger logr.Logger) *http.Server {
	srv := &http.Server{
		Handler:           impatient(s.opts.Handler),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    mostHeader,
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(logger.V(1)), slog.LevelInfo),
	}
	srv.Protocols.SetHTTP1(true) // scrapers do not need concurrent streams
	return srv
}

// impatient limits the wait for a body as for a header, although no handler reads one.
// Without a body there is no deadline: it would end the context of a long answer.
func impatient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readHeaderTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
