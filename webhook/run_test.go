// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/webhook"
)

// wire is the in-memory network of one server, usable in a bubble.
type wire struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9443} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case w.conns <- server:
		return client, nil
	case <-w.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pool trusts the authorities of a bundle.
func pool(t *testing.T, bundle []byte) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatalf("no authority in %q", bundle)
	}
	return roots
}

// client calls the server as an API server does, on its own connection.
func (w *wire) client(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: w.dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hooks.default.svc"},
	}}
}

func call(ctx context.Context, c *http.Client, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://hooks.default.svc"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func writePair(t *testing.T, dir string, certificate, key []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

// run runs s until the returned function stops it and returns the result of Run.
func run(t *testing.T, s *webhook.Server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Started():
	case err := <-done:
		t.Fatalf("Run = %v", err)
	}
	return func() error { cancel(); return <-done }
}

func TestRun_ServesOnUntilTheDrainDelayHasPassed_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certificate, key, bundle, err := webhook.Pair(time.Now(), 24*time.Hour, "hooks.default.svc")
		must(t, err)
		writePair(t, dir, certificate, key)
		s := newServer(t, webhook.Options{CertDir: dir, DrainDelay: 20 * time.Second})
		webhook.Validate(s, "", func(ctx context.Context, _ *webhook.Request, _, obj *corev1.ConfigMap) error {
			if obj.Data["slow"] != "" {
				select {
				case <-time.After(8 * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		network := newWire()
		s.ListenWith(network)
		if err := s.Check(t.Context()); err == nil {
			t.Error("Check = nil before Run: nobody can be served")
		}
		stop := run(t, s)
		must(t, s.Check(t.Context()))
		c := network.client(pool(t, bundle))
		good := review(t, ofConfigMap(admissionv1.Create, "null", "{}"))
		slow := review(t, ofConfigMap(admissionv1.Create, "null", `{"data":{"slow":"x"}}`))

		s.Drain() // as a manager that begins to stop; the context ends five seconds later
		time.Sleep(5 * time.Second)
		begun := time.Now()
		done := make(chan error, 1)
		go func() { done <- stop() }()
		time.Sleep(14 * time.Second)
		if code, text, err := call(t.Context(), c, configMapPath, good); code != 200 || err != nil {
			t.Errorf("19 seconds after the stop has begun: %d %s %v, want an answer", code, text, err)
		}
		answered := make(chan int, 1)
		go func() {
			code, _, err := call(t.Context(), c, configMapPath, slow)
			if err != nil {
				t.Errorf("what was under way: %v", err)
			}
			answered <- code
		}()
		time.Sleep(2 * time.Second)
		if _, _, err := call(t.Context(), c, configMapPath, good); err == nil {
			t.Error("21 seconds after the stop has begun a new request is answered; the port should be closed")
		}
		if code := <-answered; code != 200 {
			t.Errorf("what was under way = %d, want 200", code)
		}
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		// On a wire without a buffer, TLS waits up to five seconds to send its close to
		// a peer that does not read.
		if took := time.Since(begun); took < 22*time.Second || took > 28*time.Second {
			t.Errorf("Run returned after %v, want soon after the last request was answered, at 22 seconds", took)
		}
	})
}

func TestRun_FilesAreSwappedWhileItServes_H4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		complaints := map[string]int{}
		log := funcr.New(func(_, line string) {
			if strings.Contains(line, `"error"=`) {
				complaints[line]++
			}
		}, funcr.Options{})
		s := newServer(t, webhook.Options{CertDir: dir, DrainDelay: -1, Logger: log})
		webhook.Validate(s, "", nothing[*corev1.ConfigMap])
		network := newWire()
		s.ListenWith(network)
		stop := run(t, s)
		good := review(t, ofConfigMap(admissionv1.Create, "null", "{}"))
		look := func(roots *x509.CertPool) error {
			time.Sleep(6 * time.Second)
			_, _, err := call(t.Context(), network.client(roots), configMapPath, good)
			return err
		}
		check := func(want string) {
			t.Helper()
			err := s.Check(t.Context())
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("Check = %v, want %q", err, want)
			}
		}
		first, firstKey, firstRoots, err := webhook.Pair(time.Now(), 2*time.Hour, "hooks.default.svc")
		must(t, err)
		second, secondKey, secondRoots, err := webhook.Pair(time.Now(), time.Hour, "hooks.default.svc")
		must(t, err)
		one, two := pool(t, firstRoots), pool(t, secondRoots)

		if err := look(one); err == nil {
			t.Error("a request without a certificate was answered")
		}
		check("there is no certificate")
		writePair(t, dir, first, firstKey[:40])
		if err := look(one); err == nil {
			t.Error("a request was answered with half a key")
		}
		check("there is no certificate")
		writePair(t, dir, first, firstKey)
		must(t, look(one))
		check("")
		for name, swap := range map[string]func(){
			"the key of another":  func() { writePair(t, dir, first, secondKey) },
			"half a certificate":  func() { writePair(t, dir, second[:200], secondKey) },
			"nothing in the file": func() { writePair(t, dir, nil, nil) },
			"no file":             func() { must(t, os.Remove(filepath.Join(dir, "tls.crt"))) },
			"one that has expired": func() {
				old, oldKey, _, err := webhook.Pair(time.Now().Add(-48*time.Hour), 24*time.Hour, "hooks.default.svc")
				must(t, err)
				writePair(t, dir, old, oldKey)
			},
		} {
			swap()
			if err := look(one); err != nil {
				t.Errorf("%s: %v, want what was served before", name, err)
			}
			check("")
			if s.Snapshot().Problem == nil {
				t.Errorf("%s: the snapshot names no problem", name)
			}
		}
		writePair(t, dir, second, secondKey)
		must(t, look(two))
		if err := look(one); err == nil {
			t.Error("after the swap the old certificate is served")
		}
		time.Sleep(61 * time.Minute)
		check("the certificate has expired at ")
		must(t, stop())
		expired := 0
		for line, times := range complaints {
			if strings.Contains(line, "has expired at") {
				expired += times
			}
		}
		if expired != 2 {
			t.Errorf("logged %v; want one line of the expired one that was found, and one of that which was served", complaints)
		}
	})
}

func TestRun_TakenPortIsAFault(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	s := newServer(t, webhook.Options{Address: taken.Addr().String(), CertDir: t.TempDir()})
	err = s.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "listen on \""+taken.Addr().String()) || !strings.Contains(err.Error(), "webhook.Options.Address") {
		t.Errorf("Run = %v, want the address and what to do", err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has already run") {
		t.Errorf("a second Run = %v, want an error", err)
	}
}

// halfSent begins a request of size bytes to path and sends only begun of its body. It
// returns the answer, and how long it took.
func (w *wire) halfSent(ctx context.Context, roots *x509.CertPool, path string, size int, begun string) (string, time.Duration, error) {
	conn, err := w.dial(ctx, "", "")
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	since := time.Now()
	if err := conn.SetDeadline(since.Add(time.Minute)); err != nil {
		return "", 0, err
	}
	c := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "hooks.default.svc"})
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, size, begun)
	answer, _ := io.ReadAll(c)
	return string(answer), time.Since(since), nil
}

// A client that sends slowly is cut off, and meanwhile no other request waits for it,
// whatever size it has announced.
func TestRun_SlowClientIsNotWaitedFor_H1(t *testing.T) {
	for name, begun := range map[string]string{
		"nothing has come":     "",
		"it has begun":         "{",
		"a part of it is here": "{" + strings.Repeat(" ", 200<<10),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				certificate, key, bundle, err := webhook.Pair(time.Now(), 24*time.Hour, "hooks.default.svc")
				must(t, err)
				writePair(t, dir, certificate, key)
				s := newServer(t, webhook.Options{CertDir: dir, DrainDelay: -1, MaxBody: 1 << 20})
				webhook.Validate(s, "", nothing[*corev1.ConfigMap])
				network := newWire()
				s.ListenWith(network)
				stop := run(t, s)
				roots := pool(t, bundle)
				var slow sync.WaitGroup
				for range 32 { // more than fit if their announced sizes counted
					slow.Go(func() {
						answer, took, err := network.halfSent(t.Context(), roots, configMapPath, 1<<20, begun)
						// Some wait until the first ones are found to be slow.
						if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 408 ") || took < 10*time.Second || took > 11*time.Second {
							t.Errorf("after %v: %.100s, %v; want 408 after ten seconds", took, answer, err)
						}
					})
				}
				time.Sleep(time.Second)
				asked := time.Now()
				code, text, err := call(t.Context(), network.client(roots), configMapPath, review(t, ofConfigMap(admissionv1.Create, "null", "{}")))
				if code != 200 || err != nil || time.Since(asked) > 0 {
					t.Errorf("beside the slow ones: %d %s %v after %v, want an answer at once", code, text, err, time.Since(asked))
				}
				slow.Wait()
				must(t, stop())
			})
		})
	}
}

// A request refused before its body is read is cut off as well, and does not delay the
// stop.
func TestRun_HalfSentRequestThatIsRefusedIsCutOff_H1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certificate, key, bundle, err := webhook.Pair(time.Now(), 24*time.Hour, "hooks.default.svc")
		must(t, err)
		writePair(t, dir, certificate, key)
		s := newServer(t, webhook.Options{CertDir: dir, DrainDelay: -1})
		webhook.Validate(s, "", nothing[*corev1.ConfigMap])
		network := newWire()
		s.ListenWith(network)
		stop := run(t, s)
		_, took, err := network.halfSent(t.Context(), pool(t, bundle), "/nobody", 100, "")
		if err != nil || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("cut off after %v, %v; want ten seconds", took, err)
		}
		must(t, stop())
	})
}

// However many requests come at once, no more is read than the budget allows, and all
// are answered: with a verdict, or with Retry-After.
func TestRun_FloodIsReadWithinTheBudget_H1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, webhook.Options{MaxBody: 256 << 10})
		var mu sync.Mutex
		now, most := 0, 0
		webhook.Validate(s, "", func(context.Context, *webhook.Request, *corev1.ConfigMap, *corev1.ConfigMap) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		large := review(t, ofConfigMap(admissionv1.Create, "null", `{"data":{"a":"`+strings.Repeat("x", 256<<10-1000)+`"}}`))
		codes := map[int]int{}
		var flood sync.WaitGroup
		for range 400 {
			flood.Go(func() {
				code, _ := post(t, s, configMapPath+"?timeout=10s", large)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			})
		}
		flood.Wait()
		if most != 16 || codes[200] < 160 || codes[200] > 176 || codes[200]+codes[429] != 400 {
			t.Errorf("%d at once at most, answers %v; want 16 at once, so about 160 in ten seconds, and 429 for the rest", most, codes)
		}
	})
}
