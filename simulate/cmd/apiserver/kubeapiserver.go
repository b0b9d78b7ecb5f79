// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

const (
	// etcdWithin is how long kube-apiserver waits for its etcd, as a real one.
	etcdWithin = 20 * time.Second
	etcdEvery  = 50 * time.Millisecond
)

var kubeAPIServerFlags = []usedFlag{
	{"authorization-mode", "RBAC, or AlwaysAllow; other modes are ignored"},
	{"bind-address", "the address to listen on; 127.0.0.1"},
	{"cert-dir", "where apiserver.crt and apiserver.key are, or are written; /var/run/kubernetes"},
	{"client-ca-file", "the authority of the certificates that name users and their groups"},
	{"etcd-cafile", "the authority of etcd's certificate"},
	{"etcd-certfile", "the certificate for etcd"},
	{"etcd-keyfile", "the key of --etcd-certfile"},
	{"etcd-servers", "the simulated etcd, which says where objects are kept; without it they are in memory"},
	{"secure-port", "the port to listen on; 6443"},
	{"service-account-issuer", "the issuer of the tokens of ServiceAccounts"},
	{"service-account-key-file", "decides the key of the tokens, if there is no --service-account-signing-key-file"},
	{"service-account-signing-key-file", "decides the key of the tokens of ServiceAccounts"},
	{"tls-cert-file", "the certificate to serve, in place of that in --cert-dir"},
	{"tls-private-key-file", "the key of --tls-cert-file"},
	{"token-auth-file", "lines of token,user,uid,\"group,group\""},
}

// kubeAPIServer stands in for kube-apiserver. No actors run, as no controllers do beside a
// kube-apiserver alone.
func kubeAPIServer(ctx context.Context, args []string, out, log io.Writer) error {
	flags, help, err := readArguments(args)
	if err != nil {
		return err
	}
	if help {
		return printUsage(out, "kube-apiserver is flyball's simulated API server.", kubeAPIServerFlags)
	}
	if _, ok := flags["version"]; ok {
		_, err := fmt.Fprintln(out, "Kubernetes v1.37.0+simulated")
		return err
	}
	if unused := flags.unused(kubeAPIServerFlags); len(unused) > 0 {
		fmt.Fprintln(log, "flags without an effect on the simulated kube-apiserver:", strings.Join(unused, " "))
	}
	opts, err := listenOptions(ctx, flags)
	if err != nil {
		return err
	}
	opts.Logger = textlog.New(log, 0)
	plan, err := aim.FindPlan(os.Args[0])
	if err != nil {
		return err
	}
	if plan != nil {
		opts.Tracer = plan
		defer plan.Close()
	}
	l, err := simulate.Listen(opts)
	if err != nil {
		return err
	}
	if plan != nil {
		plan.Begin(l.Server())
	}
	return l.Run(ctx)
}

// listenOptions are what flags ask for.
func listenOptions(ctx context.Context, flags arguments) (opts simulate.ListenOptions, err error) {
	opts.AnyAddress = true
	opts.Address = net.JoinHostPort(cmp.Or(flags["bind-address"], "127.0.0.1"), cmp.Or(flags["secure-port"], "6443"))
	opts.Authorization = slices.Contains(flags.list("authorization-mode"), "RBAC")
	opts.TokenIssuer, _, _ = strings.Cut(flags["service-account-issuer"], ",")
	if opts.Seed, err = seedOf(cmp.Or(flags["service-account-signing-key-file"], flags["service-account-key-file"])); err != nil {
		return opts, err
	}
	if opts.Tokens, err = readTokens(flags["token-auth-file"]); err != nil {
		return opts, err
	}
	if opts.TLS, err = certificates(flags); err != nil {
		return opts, err
	}
	kept, err := askEtcd(ctx, flags)
	opts.Data, opts.Unsynced = kept.Dir, kept.Unsynced
	return opts, err
}

// seedOf returns a seed that only who has a file can know, so that tokens are valid after a
// restart with the same file. Without a file it is 0.
func seedOf(file string) (uint64, error) {
	if file == "" {
		return 0, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read the key of ServiceAccounts: %w", err)
	}
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:]), nil
}

// readTokens reads a file of tokens and their users.
func readTokens(file string) (map[string]simulate.User, error) {
	if file == "" {
		return nil, nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--token-auth-file: %w", err)
	}
	defer func() { _ = in.Close() }() // read only
	lines := csv.NewReader(in)
	lines.FieldsPerRecord = -1
	tokens := map[string]simulate.User{}
	for n := 1; ; n++ {
		fields, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return tokens, nil
		case err != nil:
			return nil, fmt.Errorf("--token-auth-file %s: %w", file, err)
		case len(fields) < 3 || fields[0] == "" || fields[1] == "":
			return nil, fmt.Errorf("--token-auth-file %s, record %d: write token,user,uid,\"group,group\"", file, n)
		}
		user := simulate.User{Name: fields[1], UID: fields[2]}
		if len(fields) > 3 && fields[3] != "" {
			user.Groups = strings.Split(fields[3], ",")
		}
		tokens[fields[0]] = user
	}
}

// certificates are those of the flags; in --cert-dir they are made if they are missing.
func certificates(flags arguments) (*tls.Config, error) {
	cert, key := flags["tls-cert-file"], flags["tls-private-key-file"]
	if cert == "" {
		dir := cmp.Or(flags["cert-dir"], "/var/run/kubernetes")
		cert, key = filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
		if _, err := os.Stat(cert); err != nil {
			if err := makeCertificate(dir, cert, key, flags["bind-address"]); err != nil {
				return nil, err
			}
		}
	}
	return serverTLS(cert, key, flags["client-ca-file"])
}

// makeCertificate writes a certificate, with that of its authority, and its key.
func makeCertificate(dir, cert, key, bind string) error {
	now := time.Now()
	by, err := keypair.NewAuthority(now, "simulated")
	if err != nil {
		return err
	}
	var names []string
	if bind != "" {
		names = append(names, bind)
	}
	pair, err := by.Server(now, names...)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = errors.Join(os.WriteFile(key, pair.Key, 0o600), os.WriteFile(cert, append(pair.Cert, by.PEM...), 0o644))
	}
	if err != nil {
		return fmt.Errorf("--cert-dir: %w; name a directory that you can write to", err)
	}
	return nil
}

// askEtcd asks the simulated etcd where objects are kept, and waits until it answers.
func askEtcd(ctx context.Context, flags arguments) (storage, error) {
	servers := flags.list("etcd-servers")
	if len(servers) == 0 {
		return storage{}, nil
	}
	client, err := etcdClient(flags)
	if err != nil {
		return storage{}, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, etcdWithin)
	defer cancel()
	for {
		kept, err := askOnce(ctx, client, servers[0])
		if err == nil || errors.Is(err, errForeignEtcd) {
			return kept, err
		}
		select {
		case <-ctx.Done():
			return storage{}, fmt.Errorf("--etcd-servers=%s: %w; start the etcd that is installed beside this kube-apiserver", servers[0], err)
		case <-time.After(etcdEvery):
		}
	}
}

var errForeignEtcd = errors.New("this is not the etcd that is installed beside this kube-apiserver; the simulated one needs that")

func askOnce(ctx context.Context, client *http.Client, server string) (kept storage, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+storagePath, nil)
	if err != nil {
		return kept, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return kept, err
	}
	defer func() { _ = answer.Body.Close() }() // read only
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&kept) != nil || kept.Dir == "" {
		return kept, fmt.Errorf("--etcd-servers=%s: %w", server, errForeignEtcd)
	}
	return kept, nil
}

// etcdClient returns a client with the certificates of the flags.
func etcdClient(flags arguments) (*http.Client, error) {
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := flags["etcd-cafile"]; file != "" {
		pool, err := poolOf(file)
		if err != nil {
			return nil, err
		}
		secured.RootCAs = pool
	}
	if cert := flags["etcd-certfile"]; cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, flags["etcd-keyfile"])
		if err != nil {
			return nil, fmt.Errorf("read the certificate for etcd: %w", err)
		}
		secured.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: secured}, Timeout: etcdWithin}, nil
}
