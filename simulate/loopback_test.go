// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// listening is a server on a port of this machine until the test ends, or stop
// is called, which returns what Run did.
func listening(t *testing.T, opts simulate.ListenOptions) (l *simulate.Loopback, stop func() error) {
	t.Helper()
	l, err := simulate.Listen(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = l.Run(ctx)
	}()
	stop = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return l, stop
}

// clientOf is an HTTP client with a connection pool of its own.
func clientOf(t *testing.T, cfg *rest.Config) *http.Client {
	t.Helper()
	secured, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: secured, ForceAttemptHTTP2: !strings.Contains(strings.Join(cfg.NextProtos, " "), "http/1.1")}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func fetch(t *testing.T, c *http.Client, url string) (answer *http.Response, body string) {
	t.Helper()
	answer, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func TestLoopback_OnlyThisMachineReachesIt_S24(t *testing.T) {
	for address, want := range map[string]string{
		"":                 "",
		"127.0.0.1:0":      "",
		"127.1.2.3:0":      "",
		"localhost:0":      "",
		"0.0.0.0:0":        "write 127.0.0.1:0",
		":6443":            "write 127.0.0.1:6443",
		"[::]:6443":        "write 127.0.0.1:6443",
		"192.0.2.1:80":     "write 127.0.0.1:80",
		"example.com:443":  "write 127.0.0.1:443",
		"127.0.0.1":        "write host and port",
		"127.0.0.1:999999": "invalid port",
		"6443":             "write host and port",
	} {
		l, err := simulate.Listen(simulate.ListenOptions{Address: address})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("listen on %q: %v, want a refusal that says %q", address, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("listen on %q: %v", address, err)
			continue
		}
		host, _, _ := net.SplitHostPort(strings.TrimPrefix(l.Config().Host, "https://"))
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			t.Errorf("listen on %q is reached at %s, which is not of this machine alone", address, l.Config().Host)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := l.Run(ended); err != nil {
			t.Errorf("run, when it is over: %v", err)
		}
	}
}

// With AnyAddress other machines reach the server by the names in its certificate, and still
// need credentials.
func TestLoopback_AnyAddressOnRequest_S24(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{Address: "0.0.0.0:0", AnyAddress: true})
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(l.Config().Host, "https://"))
	if host != "127.0.0.1" {
		t.Errorf("the configuration has the address %s, want one of this machine", host)
	}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cfg := l.Config()
	cfg.ServerName = own
	if answer, body := fetch(t, clientOf(t, cfg), "https://"+net.JoinHostPort(host, port)+"/api/v1/namespaces"); answer.StatusCode != http.StatusOK {
		t.Errorf("as %s it answers %d %s, want 200", own, answer.StatusCode, body)
	}
	if answer, _ := fetch(t, clientOf(t, rest.AnonymousClientConfig(l.Config())), l.Config().Host+"/api/v1/namespaces"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without credentials it answers %d, want 401", answer.StatusCode)
	}
}

// With a TLS configuration its client certificates are the users, and others anonymous.
func TestLoopback_OtherCertificates_S19(t *testing.T) {
	by, err := keypair.NewAuthority(time.Now(), "other")
	if err != nil {
		t.Fatal(err)
	}
	pair := func(k keypair.Encoded, err error) tls.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.X509KeyPair(k.Cert, k.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	opts := simulate.ListenOptions{TLS: &tls.Config{
		Certificates: []tls.Certificate{pair(by.Server(time.Now()))}, ClientCAs: by.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
	}}
	opts.Authorization = true
	l, _ := listening(t, opts)
	for group, want := range map[string]int{"": http.StatusForbidden, "readers": http.StatusForbidden, "system:masters": http.StatusOK} {
		cfg := l.Config()
		cfg.CAData = by.PEM
		if group != "" {
			k, err := by.Client(time.Now(), "jane", group)
			if err != nil {
				t.Fatal(err)
			}
			cfg.CertData, cfg.KeyData = k.Cert, k.Key
		}
		if answer, body := fetch(t, clientOf(t, cfg), cfg.Host+"/api/v1/namespaces"); answer.StatusCode != want {
			t.Errorf("of the group %q: %d %s, want %d", group, answer.StatusCode, body, want)
		}
	}
}

func TestLoopback_PortInUse(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{})
	taken := strings.TrimPrefix(l.Config().Host, "https://")
	if _, err := simulate.Listen(simulate.ListenOptions{Address: taken}); err == nil || !strings.Contains(err.Error(), "another program has the port") {
		t.Errorf("a taken port: %v, want an error that says so", err)
	}
}

func TestLoopback_LetsInItsOwnAlone_S24(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{})
	url := l.Config().Host + "/api/v1/namespaces"
	if answer, body := fetch(t, clientOf(t, l.Config()), url); answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		t.Errorf("the administrator gets %s over %s: %s; want 200 over HTTP/2", answer.Status, answer.Proto, body)
	}
	plain := l.Config()
	plain.NextProtos = []string{"http/1.1"}
	if answer, _ := fetch(t, clientOf(t, plain), url); answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 {
		t.Errorf("the administrator gets %s over %s, want 200 over HTTP/1.1 when asked", answer.Status, answer.Proto)
	}
	nobody := l.Config()
	nobody.CertData, nobody.KeyData = nil, nil
	if answer, body := fetch(t, clientOf(t, nobody), url); answer.StatusCode != http.StatusUnauthorized || !strings.Contains(body, `"reason":"Unauthorized"`) {
		t.Errorf("another user of the machine gets %s %s, want 401", answer.Status, body)
	}
	other, err := keypair.NewAuthority(time.Now(), "other")
	if err != nil {
		t.Fatal(err)
	}
	forged, err := other.Client(time.Now(), "simulated-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	stranger := l.Config()
	stranger.CertData, stranger.KeyData = forged.Cert, forged.Key
	if _, err := clientOf(t, stranger).Get(url); err == nil {
		t.Error("a certificate of somebody else's making is let in")
	}
	distrusting := l.Config()
	distrusting.CAData = other.PEM
	if _, err := clientOf(t, distrusting).Get(url); err == nil {
		t.Error("a client that trusts another authority takes the server for its own")
	}
	if answer, body := fetch(t, http.DefaultClient, "http"+strings.TrimPrefix(url, "https")); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP gets %s %s, want 400, which says what is wrong", answer.Status, body)
	}
}

func TestLoopback_EndsWithOpenWatches_S24(t *testing.T) {
	l, stop := listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}})
	var open []watch.Interface
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		cfg := l.Config()
		cfg.NextProtos = protocols
		clients, err := kubernetes.NewForConfigAndClient(cfg, clientOf(t, cfg))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w, err := clients.CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, w)
		}
	}
	if _, err := l.Server().Put(fixture.ConfigMap("a", "1")); err != nil {
		t.Fatal(err)
	}
	for _, w := range open {
		if e := <-w.ResultChan(); e.Type != watch.Added {
			t.Errorf("a watch tells %v, want a", e)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("stopped with open watches: %v", err)
	}
	for _, w := range open {
		for range w.ResultChan() {
		}
	}
	if n := l.Server().Watches(fixture.ConfigMaps); n != 0 {
		t.Errorf("%d watches are open after Run", n)
	}
	again, err := net.Listen("tcp", strings.TrimPrefix(l.Config().Host, "https://"))
	if err != nil {
		t.Fatalf("the port is not given back: %v", err)
	}
	again.Close()
}

func TestLoopback_Kubeconfig(t *testing.T) {
	l, _ := listening(t, simulate.ListenOptions{})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600: it has a private key", info.Mode(), err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfigAndClient(cfg, clientOf(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("what the file says does not reach the server: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v, want the kubeconfig alone", left, err)
	}
	missing := filepath.Join(t.TempDir(), "not", "there")
	if err := l.WriteKubeconfig(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "a directory that you can write to") {
		t.Errorf("where no file can be: %v, want an error that says what to do", err)
	}
}
