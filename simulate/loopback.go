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

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/internal/textlog"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

const (
	// adminUser is the user of the kubeconfig.
	adminUser = "simulated-admin"

	// How long clients may take, as with a real server. A watch has no limit.
	headerWithin = 32 * time.Second
	bodyWithin   = time.Minute
	idleFor      = 90 * time.Second

	// lastWords is how long requests that wait for a failed journal may take to be
	// answered.
	lastWords = time.Second
)

// ListenOptions are the options of a Loopback. The zero value listens on any free port.
type ListenOptions struct {
	// Options of the server. A Seed of 0 is replaced by a random one: with the seed, anyone
	// on this machine could forge tokens of ServiceAccounts.
	Options
	// Address to listen on. Without AnyAddress it must be a loopback address:
	// 127.0.0.1:6443, [::1]:0, localhost:0. Empty: 127.0.0.1 and any free port.
	Address string
	// AnyAddress allows an Address that other machines can reach; the certificate of the
	// server then also names it. Clients need a certificate or a token nevertheless.
	AnyAddress bool
	// TLS replaces the certificates of the server. Its client certificates name users, and
	// requests without credentials are no longer refused: with Authorization they are
	// anonymous, without it they are those of User. Config and Kubeconfig have only the
	// address.
	TLS *tls.Config
	// Data is a directory in which objects are kept between starts. It is created if it
	// does not exist. One process at a time can use it. Empty: objects are lost when the
	// server stops.
	Data string
	// Unsynced leaves it to the operating system when changes in Data reach the disk. That is
	// faster; the objects survive the process, but not a crash of the machine.
	Unsynced bool
	// Logger for the person who runs the server. Zero: lines of text on stderr.
	Logger logr.Logger
}

// Loopback is a Server for other programs on this machine, such as kubectl. It serves TLS
// with its own certificate. It accepts only clients with the certificate of its kubeconfig,
// or with a token that the server knows. ListenOptions.AnyAddress and TLS change that. Safe
// for concurrent use.
type Loopback struct {
	server     *Server
	kept       *store.Journal // nil: nothing is kept
	listener   net.Listener
	log        logr.Logger
	open       bool // to requests without credentials
	config     *rest.Config
	kubeconfig []byte
}

// Listen creates a server and opens its port. The server answers once Run is called, which
// also releases the port and Data. Listen fails if the address is not a loopback address,
// if the address or Data is in use, or if the files in Data are damaged; the error says
// what to do.
func Listen(opts ListenOptions) (_ *Loopback, err error) {
	address, err := listenAddress(opts.Address, opts.AnyAddress)
	if err != nil {
		return nil, err
	}
	for opts.Seed == 0 {
		var random [8]byte
		_, _ = rand.Read(random[:]) // does not fail
		opts.Seed = binary.NativeEndian.Uint64(random[:])
	}
	l := &Loopback{log: opts.Logger, open: opts.TLS != nil, config: &rest.Config{}, server: New(opts.Options)}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.log.IsZero() {
		l.log = textlog.New(os.Stderr, 0)
	}
	secured := opts.TLS
	if secured == nil {
		if secured, err = l.identities(time.Now(), namesOf(address)); err != nil {
			return nil, err
		}
	}
	plain, err := net.Listen("tcp", address)
	if err != nil {
		return nil, addressError(address, err)
	}
	l.listener = tls.NewListener(plain, secured)
	l.config.Host = "https://" + reachedAt(plain.Addr())
	if l.kubeconfig, err = localserver.Kubeconfig("simulated", l.config); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the simulated API server: %w", err)
	}
	if opts.Data != "" {
		if err := l.keepIn(opts.Data, opts.Unsynced); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// keepIn loads the objects of a directory, and keeps later changes there.
func (l *Loopback) keepIn(dir string, unsynced bool) error {
	j, content, warning, err := store.OpenJournal(dir)
	if err != nil {
		return err
	}
	l.kept, j.Unsynced = j, unsynced
	if warning != "" {
		l.log.Info(warning)
	}
	return l.server.keepIn(j, content)
}

// close releases what Listen has acquired.
func (l *Loopback) close() (err error) {
	if l.listener != nil {
		_ = l.listener.Close() // a second time, after serving
	}
	if l.kept != nil {
		err = l.kept.Close()
	}
	return err
}

// identities creates the certificates of the server, with these names, and of its
// administrator.
func (l *Loopback) identities(now time.Time, names []string) (*tls.Config, error) {
	by, err := keypair.NewAuthority(now, "simulated")
	if err != nil {
		return nil, err
	}
	server, err := by.Server(now, names...)
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

// Server returns the server, to put objects into it and to inspect it.
func (l *Loopback) Server() *Server { return l.server }

// Config returns the configuration for clients in Go, as the administrator.
func (l *Loopback) Config() *rest.Config { return rest.CopyConfig(l.config) }

// Kubeconfig returns the content of a kubeconfig file for the administrator, who may do
// everything.
func (l *Loopback) Kubeconfig() []byte { return append([]byte(nil), l.kubeconfig...) }

// WriteKubeconfig writes the kubeconfig to a file that only this user can read. It replaces
// an existing file at once; no reader sees a part of it.
func (l *Loopback) WriteKubeconfig(path string) error {
	write := func(to io.Writer) error {
		_, err := to.Write(l.kubeconfig)
		return err
	}
	if err := store.ReplaceFile(path, write); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w; name a file in a directory that you can write to", path, err)
	}
	return nil
}

// Run serves until ctx ends. It returns when every request has ended and all that they have
// stored is in Data; open watches do not delay it. If Data can no longer be written, the
// requests that wait for it fail, and Run returns the cause. A Loopback runs once.
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

// patient returns an HTTP server that waits for slow clients as long as a real API server.
func (l *Loopback) patient() *http.Server {
	return &http.Server{
		Handler:           guarded(l.server, l.open),
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleFor,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(l.log.V(1)), slog.LevelInfo),
	}
}

// guarded accepts requests with a client certificate of the server, or with a token, which
// the server then checks. It refuses all others, because every user of the machine can
// reach the port, unless open.
func guarded(next http.Handler, open bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0) && access.BearerToken(r.Header) == "" {
			encode.Refuse(w, encode.For(nil, r.Header.Get("Accept")), apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
