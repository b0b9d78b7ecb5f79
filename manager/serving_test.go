// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
)

func TestServing_WhatWouldBeOpenIsRefused_M6(t *testing.T) {
	for _, c := range []struct {
		address string
		serving manager.Serving
		wants   string // empty: it is accepted
	}{
		{":8443", manager.Serving{Secure: true, Guard: true, Profiling: true}, ""},
		{":8443", manager.Serving{Secure: true, CertDir: "certs"}, ""},
		{"127.0.0.1:0", manager.Serving{Guard: true, Profiling: true}, ""},
		{"[::1]:0", manager.Serving{Profiling: true}, ""},
		{"localhost:0", manager.Serving{Profiling: true}, ""},
		{"", manager.Serving{Guard: true}, ""},
		{"0", manager.Serving{Guard: true, Profiling: true, CertDir: "certs"}, ""},
		{":8080", manager.Serving{Guard: true}, "set MetricsServing.Secure (-metrics-secure), or a MetricsAddress of loopback"},
		{"0.0.0.0:8080", manager.Serving{Guard: true}, "others could read them"},
		{"metrics:8080", manager.Serving{Guard: true}, "others could read them"},
		{":8443", manager.Serving{Secure: true, Profiling: true}, "set MetricsServing.Guard (-metrics-guard), or a MetricsAddress of loopback"},
		{":8443", manager.Serving{Secure: true, Guard: true, Console: console.Handler}, ""},
		{"127.0.0.1:0", manager.Serving{Console: console.Handler}, ""},
		{":8443", manager.Serving{Secure: true, Console: console.Handler}, `Console lets every client that reaches ":8443" see keys, errors and objects; set`},
		{":8443", manager.Serving{Secure: true, Guard: true, Actions: true}, ""},
		{"127.0.0.1:0", manager.Serving{Actions: true}, ""},
		{":8443", manager.Serving{Secure: true, Actions: true}, `Actions lets every client that reaches ":8443" pause controllers; set`},
		{":8080", manager.Serving{CertDir: "certs"}, `CertDir is "certs", but metrics are served without TLS; set MetricsServing.Secure`},
	} {
		_, err := manager.New(manager.Options{
			MetricsAddress: c.address, MetricsServing: c.serving, Logger: quiet(), Config: &rest.Config{Host: "http://127.0.0.1:1"},
		})
		if (c.wants == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.wants) {
			t.Errorf("New with %q, %+v = %v, want %q", c.address, c.serving, err, c.wants)
		}
	}
}

func TestServing_Flags(t *testing.T) {
	var o manager.Options
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	o.BindFlags(fs)
	must(t, fs.Parse(strings.Fields("-metrics-secure -metrics-cert-path certs -metrics-guard -profiling=true")))
	if want := (manager.Serving{Secure: true, CertDir: "certs", Guard: true, Profiling: true}); !reflect.DeepEqual(o.MetricsServing, want) {
		t.Errorf("flags say %+v, want %+v", o.MetricsServing, want)
	}
}

// serves runs a manager with j as its API server until the test ends.
func serves(t *testing.T, j *judge, serving manager.Serving) (address string) {
	t.Helper()
	m, err := manager.New(manager.Options{
		Config: &rest.Config{Host: "http://judge", Transport: j}, Logger: quiet(),
		HealthAddress: "0", MetricsAddress: "127.0.0.1:0", MetricsServing: serving,
	})
	must(t, err)
	started := make(chan struct{})
	must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error { close(started); <-ctx.Done(); return nil })))
	stop, wait := run(t, m)
	t.Cleanup(func() { stop(); must(t, wait()) })
	<-started
	return m.MetricsAddr()
}

// scrape sends a request over a new TLS connection, and returns the certificate of the
// server.
func scrape(t *testing.T, url, token string) (code int, text string, shown *tls.ConnectionState, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), resp.TLS, err
}

func TestServing_OverTLSAndGuarded_M6(t *testing.T) {
	j := &judge{users: map[string]string{"tp": "prometheus", "tn": "nobody"},
		may: []string{"prometheus get /metrics", "prometheus get /debug/pprof/heap"}}
	address := serves(t, j, manager.Serving{Secure: true, Guard: true, Profiling: true})
	code, text, shown, err := scrape(t, "https://"+address+"/metrics", "tp")
	must(t, err)
	if code != http.StatusOK || !strings.Contains(text, "go_goroutines") {
		t.Errorf("/metrics = %d %.100q, want 200 and metrics", code, text)
	}
	if shown.NegotiatedProtocol == "h2" || shown.Version < tls.VersionTLS12 {
		t.Errorf("protocol %q, TLS %x, want HTTP/1.1 over TLS 1.2 or newer", shown.NegotiatedProtocol, shown.Version)
	}
	for path, want := range map[string]int{"/metrics": 403, "/debug/pprof/heap": 403, "/": 403} {
		if code, _, _, err := scrape(t, "https://"+address+path, "tn"); code != want || err != nil {
			t.Errorf("%s as nobody = %d %v, want %d", path, code, err, want)
		}
	}
	if code, _, _, err := scrape(t, "https://"+address+"/debug/pprof/heap", "tp"); code != 200 || err != nil {
		t.Errorf("the heap = %d %v, want 200: its path was granted", code, err)
	}
	if code, _, _, err := scrape(t, "https://"+address+"/debug/pprof/goroutine", "tp"); code != 403 || err != nil {
		t.Errorf("goroutines = %d %v, want 403: only the heap was granted", code, err)
	}
	if resp, err := http.Get("http://" + address + "/metrics"); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("plain HTTP is answered on a port of TLS")
		}
	}
}

func TestServing_ShowsTheCertificateOfItsFiles(t *testing.T) {
	dir := t.TempDir()
	by, err := keypair.NewAuthority(time.Now(), "test")
	must(t, err)
	pair, err := by.Server(time.Now())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
	address := serves(t, &judge{}, manager.Serving{Secure: true, CertDir: dir})
	code, _, shown, err := scrape(t, "https://"+address+"/metrics", "")
	must(t, err)
	served, err := tls.X509KeyPair(pair.Cert, pair.Key)
	must(t, err)
	if code != http.StatusOK || !bytes.Equal(shown.PeerCertificates[0].Raw, served.Certificate[0]) {
		t.Errorf("/metrics = %d with another certificate, want 200 and that of the files", code)
	}
}

func TestServing_WithoutACertificateNobodyIsAnswered(t *testing.T) {
	address := serves(t, &judge{}, manager.Serving{Secure: true, CertDir: t.TempDir()})
	if code, _, _, err := scrape(t, "https://"+address+"/metrics", ""); err == nil {
		t.Errorf("/metrics = %d without a certificate, want no connection", code)
	}
}

func TestProfiles_AreServedAndNotByDefault(t *testing.T) {
	m := newManager(t, manager.Options{})
	without, err := m.MetricsHandler(manager.Serving{})
	must(t, err)
	with, err := m.MetricsHandler(manager.Serving{Profiling: true})
	must(t, err)
	for _, c := range []struct {
		handler http.Handler
		path    string
		code    int
		says    string
	}{
		{without, "/debug/pprof/", 404, ""},
		{without, "/debug/pprof/heap", 404, ""},
		{http.DefaultServeMux, "/debug/pprof/", 404, ""},
		{with, "/debug/pprof/", 200, "goroutine\t"},
		{with, "/debug/pprof/goroutine?debug=2", 200, "goroutine "},
		{with, "/debug/pprof/heap?gc=1", 200, "\x1f\x8b"},
		{with, "/debug/pprof/allocs", 200, "\x1f\x8b"},
		{with, "/debug/pprof/nothing", 404, `there is no profile "nothing"`},
		{with, "/debug/pprof/heap?debug=x", 400, `debug is "x"`},
		{with, "/debug/pprof/profile?seconds=0", 400, "seconds is 0; give 1 to 300"},
		{with, "/debug/pprof/trace?seconds=301", 400, "seconds is 301"},
		{with, "/metrics", 200, "go_goroutines"},
	} {
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s = %d %.200q, want %d with %q", c.path, w.Code, w.Body, c.code, c.says)
		}
	}
}

func TestProfiles_OneRecordingAtATimeUntilItsReaderGoes(t *testing.T) {
	m := newManager(t, manager.Options{})
	handler, err := m.MetricsHandler(manager.Serving{Profiling: true})
	must(t, err)
	for _, name := range []string{"profile", "trace"} {
		ctx, leave := context.WithCancel(t.Context())
		answers := make(chan *httptest.ResponseRecorder, 2)
		var both sync.WaitGroup
		for range cap(answers) {
			both.Go(func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/"+name+"?seconds=300", nil).WithContext(ctx))
				answers <- w
			})
		}
		if w := <-answers; w.Code != http.StatusConflict {
			t.Errorf("the first answer to two who record a %s is %d %.100q, want 409", name, w.Code, w.Body)
		}
		leave()
		both.Wait()
		if w := <-answers; w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s = %d with %d bytes, want what was recorded until its reader went", name, w.Code, w.Body.Len())
		}
	}
}

func TestServing_TLSChangesHowIsServed(t *testing.T) {
	address := serves(t, &judge{}, manager.Serving{Secure: true, TLS: func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }})
	old := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	if resp, err := (&http.Client{Transport: old}).Get("https://" + address + "/metrics"); err == nil {
		resp.Body.Close()
		t.Error("TLS 1.2 is served, and MetricsServing.TLS asks for 1.3")
	}
	if _, _, shown, err := scrape(t, "https://"+address+"/metrics", ""); err != nil || shown.Version != tls.VersionTLS13 {
		t.Errorf("TLS %v %v, want 1.3", shown, err)
	}
	_, err := manager.New(manager.Options{Config: &rest.Config{Host: "http://x"}, MetricsServing: manager.Serving{TLS: func(*tls.Config) {}}})
	if err == nil || !strings.Contains(err.Error(), "MetricsServing.TLS is set, but metrics are served without TLS") {
		t.Errorf("TLS without Secure: %v, want what to set", err)
	}
}

// What the console and its JSON show is for those who are authorized, or on this machine.
func TestServing_InspectionIsForTheAuthorized_M6(t *testing.T) {
	m, err := manager.New(manager.Options{Logger: quiet(), Config: &rest.Config{Host: "http://127.0.0.1:1"}, MetricsAddress: "0", HealthAddress: "0"})
	must(t, err)
	for _, c := range []struct {
		address    string
		serving    manager.Serving
		json, page int
	}{
		{":8080", manager.Serving{}, http.StatusNotFound, http.StatusNotFound},
		{"127.0.0.1:0", manager.Serving{}, http.StatusOK, http.StatusNotFound},
		{"127.0.0.1:0", manager.Serving{Console: console.Handler}, http.StatusOK, http.StatusOK},
		{":8443", manager.Serving{Secure: true, Guard: true, Console: console.Handler}, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		handler, err := m.MetricsHandlerAt(c.address, c.serving)
		must(t, err)
		for path, want := range map[string]int{"/debug/flyball/v1/overview": c.json, "/debug/flyball/": c.page} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("at %s, with a guard: %v, %s is answered with %d, want %d", c.address, c.serving.Guard, path, w.Code, want)
			}
		}
	}
}
