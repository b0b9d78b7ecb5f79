// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/authority"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/internal/textlog"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/journal"
)

const (
	// adminUser is who the kubeconfig logs in as.
	adminUser = "simulated-admin"

	// What a client may take its time for, as with a real server. A watch lives
	// as long as it likes.
	headerWithin = 32 * time.Second
	bodyWithin   = time.Minute
	idleFor      = 90 * time.Second

	// lastWords is how long those who wait for a journal that fails are told so.
	lastWords = time.Second
)

// ListenOptions of a Loopback. The zero value listens on any free port.
type ListenOptions struct {
	// Options of the server. A Seed of 0 is drawn anew each time: who knows it
	// can make the tokens of ServiceAccounts, and the whole machine reaches the
	// port.
	Options
	// Address to listen on. Only this machine can be: 127.0.0.1:6443, [::1]:0,
	// localhost:0. Empty: 127.0.0.1 and any free port.
	Address string
	// Data is a directory to keep the objects in, from one start to the next. It
	// is made if need be, and one process at a time can have it. Empty: what is
	// stored goes with the server.
	Data string
	// Logger of what the person who runs the server should know. Zero: lines of
	// text on stderr.
	Logger logr.Logger
}

// Loopback is a Server that programs of this machine reach, kubectl among them:
// over TLS, with a certificate of its own making. It lets in who has that of its
// kubeconfig, and nobody else. Safe for concurrent use.
type Loopback struct {
	server     *Server
	kept       *journal.Journal // nil: nothing is kept
	listener   net.Listener
	log        logr.Logger
	config     *rest.Config
	kubeconfig []byte
}

// Listen makes a server and takes its port. It answers when it is Run, which
// also gives port and Data back. The error says what to do when the address is
// not of this machine alone, when it or Data is taken, and when what is in Data
// is damaged.
func Listen(opts ListenOptions) (_ *Loopback, err error) {
	address, err := loopbackAddress(opts.Address)
	if err != nil {
		return nil, err
	}
	for opts.Seed == 0 {
		var random [8]byte
		_, _ = rand.Read(random[:]) // does not fail
		opts.Seed = binary.NativeEndian.Uint64(random[:])
	}
	l := &Loopback{log: opts.Logger, server: New(opts.Options)}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.log.IsZero() {
		l.log = textlog.New(os.Stderr, 0)
	}
	secured, err := l.identities(time.Now())
	if err != nil {
		return nil, err
	}
	plain, err := net.Listen("tcp", address)
	if err != nil {
		return nil, addressError(address, err)
	}
	l.listener = tls.NewListener(plain, secured)
	l.config.Host = "https://" + plain.Addr().String()
	if l.kubeconfig, err = kubeconfig.Of("simulated", l.config); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the simulated API server: %w", err)
	}
	if opts.Data != "" {
		if err := l.keepIn(opts.Data); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// keepIn goes on from what is in a directory, and keeps what comes there.
func (l *Loopback) keepIn(dir string) error {
	j, content, warning, err := journal.Open(dir)
	if err != nil {
		return err
	}
	l.kept = j
	if warning != "" {
		l.log.Info(warning)
	}
	return l.server.keepIn(j, content)
}

// close gives back what Listen took.
func (l *Loopback) close() (err error) {
	if l.listener != nil {
		_ = l.listener.Close() // a second time, after serving
	}
	if l.kept != nil {
		err = l.kept.Close()
	}
	return err
}

// identities makes the certificates: of the server, and of who may log in.
func (l *Loopback) identities(now time.Time) (*tls.Config, error) {
	by, err := authority.New(now, "simulated")
	if err != nil {
		return nil, err
	}
	server, err := by.Server(now)
	if err != nil {
		return nil, err
	}
	admin, err := by.Client(now, adminUser, "system:masters")
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		return nil, fmt.Errorf("read a certificate just made: %w", err)
	}
	l.config = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: by.PEM, CertData: admin.Cert, KeyData: admin.Key}}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		NextProtos:   []string{"h2", "http/1.1"},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    by.Pool(),
	}, nil
}

// Server is what is listened for: to put objects into it, and to look at it.
func (l *Loopback) Server() *Server { return l.server }

// Config is how the server is reached by clients in Go, as its administrator.
func (l *Loopback) Config() *rest.Config { return rest.CopyConfig(l.config) }

// Kubeconfig is the content of a file that tells kubectl how to reach the
// server, as its administrator. Who has it may do everything.
func (l *Loopback) Kubeconfig() []byte { return append([]byte(nil), l.kubeconfig...) }

// WriteKubeconfig writes it to a file that only this user can read, in place of
// what was there. Nobody ever sees a part of it.
func (l *Loopback) WriteKubeconfig(path string) error {
	write := func(to io.Writer) error {
		_, err := to.Write(l.kubeconfig)
		return err
	}
	if err := journal.ReplaceFile(path, write); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w; name a file in a directory that you can write to", path, err)
	}
	return nil
}

// Run serves until ctx ends, and returns when every request has ended, and what
// they have stored is in Data; open watches do not delay that. When Data cannot
// be written any more, those who wait for it are told, and Run returns why. A
// Loopback runs once.
func (l *Loopback) Run(ctx context.Context) error {
	server := l.patient()
	stored, end := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	var lost error
	keeping.Go(func() {
		if lost = l.server.store.Keep(stored); lost != nil {
			short, cancel := context.WithTimeout(stored, lastWords)
			defer cancel()
			_ = server.Shutdown(short)
			_ = server.Close()
		}
	})
	err := serveOn(ctx, l.listener, server)
	end()
	keeping.Wait()
	return errors.Join(err, lost, l.close())
}

// patient is an HTTP server that waits for slow clients as long as a real one.
func (l *Loopback) patient() *http.Server {
	return &http.Server{
		Handler:           guarded(l.server),
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleFor,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(l.log.V(1)), slog.LevelInfo),
	}
}

// guarded lets in who shows a certificate of the server's own, or a token, which
// the server then knows or refuses, so that a port that every user of the
// machine reaches is no door for them.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.TLS == nil || len(r.TLS.PeerCertificates) == 0) && access.BearerToken(r.Header) == "" {
			encode.Refuse(w, encode.For(nil, r.Header.Get("Accept")), apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		if r.Method != http.MethodGet {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
		}
		next.ServeHTTP(w, r)
	})
}
