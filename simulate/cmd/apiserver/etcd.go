// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// storagePath is where the stand-in of etcd answers the stand-in of kube-apiserver.
	storagePath = "/flyball/storage"

	// etcdVersion is what clients read at /version; it stands for no etcd.
	etcdVersion = `{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}`

	headersWithin = 30 * time.Second
)

// storage says where kube-apiserver keeps objects.
type storage struct {
	Dir      string `json:"dir"`
	Unsynced bool   `json:"unsynced"`
}

var etcdFlags = []usedFlag{
	{"cert-file", "the certificate to serve"},
	{"client-cert-auth", "refuse clients without a certificate of --trusted-ca-file"},
	{"data-dir", "where kube-apiserver keeps its objects; default.etcd"},
	{"key-file", "the key of --cert-file"},
	{"listen-client-urls", "the URLs to answer at; http://localhost:2379"},
	{"trusted-ca-file", "the authority of the clients' certificates"},
	{"unsafe-no-fsync", "do not wait for the disk"},
}

// etcd stands in for etcd: it answers health checks and requests to compact, and tells
// kube-apiserver the directory for its objects. It stores nothing.
func etcd(ctx context.Context, args []string, out, log io.Writer) error {
	flags, help, err := readArguments(args)
	if err != nil {
		return err
	}
	if help {
		return printUsage(out, "etcd stands in for etcd under a simulated kube-apiserver, and stores nothing itself.", etcdFlags)
	}
	if _, ok := flags["version"]; ok {
		_, err := fmt.Fprintln(out, "etcd Version: 3.6.0 (simulated by flyball)")
		return err
	}
	if unused := flags.unused(etcdFlags); len(unused) > 0 {
		fmt.Fprintln(log, "flags without an effect on the simulated etcd:", strings.Join(unused, " "))
	}
	kept := storage{Unsynced: flags.on("unsafe-no-fsync")}
	if kept.Dir, err = filepath.Abs(cmp.Or(flags["data-dir"], "default.etcd")); err != nil {
		return fmt.Errorf("find --data-dir: %w", err)
	}
	if err := os.MkdirAll(kept.Dir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w; name a directory that you can write to", err)
	}
	urls := flags.list("listen-client-urls")
	if len(urls) == 0 {
		urls = []string{"http://localhost:2379"}
	}
	var listeners []net.Listener
	defer func() {
		for _, ln := range listeners {
			_ = ln.Close()
		}
	}()
	for _, each := range urls {
		ln, err := listenAt(each, flags)
		if err != nil {
			return err
		}
		listeners = append(listeners, ln)
	}
	return serveAll(ctx, listeners, etcdHandler(kept))
}

// serveAll serves on all listeners until ctx ends or one fails.
func serveAll(ctx context.Context, listeners []net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headersWithin}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	errs := make([]error, len(listeners))
	var all sync.WaitGroup
	for i, ln := range listeners {
		all.Go(func() {
			if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = fmt.Errorf("serve the simulated etcd: %w", err)
				_ = server.Close()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// listenAt listens at a URL, with TLS if it says https.
func listenAt(address string, flags arguments) (net.Listener, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("--listen-client-urls=%s: write a URL such as http://127.0.0.1:2379", address)
	}
	ln, err := net.Listen("tcp", at.Host)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--listen-client-urls=%s: %w; another program has the port, so stop it or name another", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen-client-urls=%s: %w", address, err)
	}
	if at.Scheme != "https" {
		return ln, nil
	}
	secured, err := serverTLS(flags["cert-file"], flags["key-file"], flags["trusted-ca-file"])
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	if flags.on("client-cert-auth") {
		secured.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return tls.NewListener(ln, secured), nil
}

// serverTLS reads a certificate, its key and the authority of clients, which may be "".
func serverTLS(cert, key, clients string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %q with the key %q: %w", cert, key, err)
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if clients != "" {
		if secured.ClientCAs, err = poolOf(clients); err != nil {
			return nil, err
		}
		secured.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return secured, nil
}

// poolOf reads the authorities in a file.
func poolOf(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the authority: %s has no certificate in PEM", file)
	}
	return pool, nil
}

// etcdHandler answers what envtest asks etcd.
func etcdHandler(kept storage) http.Handler {
	where, _ := json.Marshal(kept) // strings and booleans
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
	}
	mux := http.NewServeMux()
	for _, path := range []string{"/health", "/livez", "/readyz"} {
		mux.HandleFunc(path, answer(`{"health":"true","reason":""}`))
	}
	mux.HandleFunc("/version", answer(etcdVersion))
	mux.HandleFunc(storagePath, answer(string(where)))
	// The history before a restart of kube-apiserver is always compacted, so there is nothing
	// to do; that of a running one is not etcd's.
	mux.HandleFunc("POST /v3/kv/range", answer(`{"header":{"revision":"1"},"count":"0"}`))
	mux.HandleFunc("POST /v3/kv/compaction", answer(`{"header":{"revision":"1"}}`))
	return mux
}
