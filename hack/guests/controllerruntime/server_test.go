// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// atOnce is the number of concurrent suites. They mostly wait, so it exceeds the number of
// processors.
const atOnce = "6"

// TestMain runs the tests or, under the name of a control plane's binary, acts as that
// binary.
func TestMain(m *testing.M) {
	run := map[string]func(context.Context, []string) error{"etcd": etcd, "kube-apiserver": apiserver}[filepath.Base(os.Args[0])]
	if run == nil {
		flag.Parse()
		if err := flag.Set("test.parallel", atOnce); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// simulatedBinaries creates a directory that has this program under the names that envtest
// starts.
func simulatedBinaries(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// etcd answers envtest's health check. The simulated server stores in memory.
func etcd(ctx context.Context, args []string) error {
	flags, help := parse(args, "listen-client-urls")
	if help {
		return nil
	}
	address, err := url.Parse(flags["listen-client-urls"])
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", address.Host)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"health":"true"}`)
	}), ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}

// apiserver serves the simulated API with the certificates that envtest has written, and
// accepts clients with a certificate that envtest has signed.
func apiserver(ctx context.Context, args []string) error {
	flags, help := parse(args, "secure-port", "bind-address", "cert-dir", "client-ca-file", "authorization-mode")
	if help {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(flags["cert-dir"], "apiserver.crt"), filepath.Join(flags["cert-dir"], "apiserver.key"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(flags["client-ca-file"])
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return fmt.Errorf("read %s: no certificate", flags["client-ca-file"])
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(flags["bind-address"], flags["secure-port"]))
	if err != nil {
		return err
	}
	server := simulate.New(simulate.Options{Authorization: strings.Contains(flags["authorization-mode"], "RBAC")})
	return server.Run(ctx, tls.NewListener(ln, &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{"h2", "http/1.1"},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    trusted,
	}))
}

// parse returns the values of the wanted flags. help: the flags were requested and have
// been printed.
func parse(args []string, wanted ...string) (values map[string]string, help bool) {
	values = map[string]string{}
	for _, arg := range args {
		if arg == "--help" {
			for _, name := range wanted {
				fmt.Printf("  --%s string\n", name)
			}
			return nil, true
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		values[name] = value
	}
	return values, false
}
