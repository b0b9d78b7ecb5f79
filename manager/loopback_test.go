// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/manager"
)

// askAs sends a GET as a page whose name resolves to this machine would.
func askAs(t *testing.T, host, url string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Host, req.Close = host, true
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

func TestManager_LoopbackAnswersOnlyForItsOwnHosts_M9(t *testing.T) {
	for _, c := range []struct {
		name, address string
		allowed       []string
		host          string
		answers       bool
	}{
		{"localhost", "127.0.0.1:0", nil, "localhost:8080", true},
		{"localhost in capitals, with a dot", "127.0.0.1:0", nil, "LOCALHOST.:1", true},
		{"a loopback address", "127.0.0.1:0", nil, "127.0.0.1:12345", true},
		{"another loopback address", "127.0.0.1:0", nil, "127.8.9.1", true},
		{"IPv6", "127.0.0.1:0", nil, "[::1]:8080", true},
		{"IPv6 without a port", "127.0.0.1:0", nil, "[::1]", true},
		{"a page's own name", "127.0.0.1:0", nil, "evil.example", false},
		{"with a port", "127.0.0.1:0", nil, "evil.example:8080", false},
		{"a name that begins as a local one", "127.0.0.1:0", nil, "localhost.evil.example", false},
		{"a name that ends as a local one", "127.0.0.1:0", nil, "evil-localhost", false},
		{"a name that looks like an address", "127.0.0.1:0", nil, "127.0.0.1.evil.example", false},
		{"all addresses", "127.0.0.1:0", nil, "0.0.0.0:8080", false},
		{"this machine's address in the network", "127.0.0.1:0", nil, "10.1.2.3", false},
		{"an allowed host", "127.0.0.1:0", []string{"metrics.prod.svc"}, "Metrics.prod.svc:8443", true},
		{"another than is allowed", "127.0.0.1:0", []string{"metrics.prod.svc"}, "evil.example", false},
		{"any", "127.0.0.1:0", []string{"*"}, "evil.example", true},
		{"the host of the address", "localhost:0", nil, "localhost", true},
		{"a server on all interfaces", ":0", nil, "website.example", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := manager.Options{HealthAddress: c.address, MetricsAddress: c.address, AllowedHosts: c.allowed, Config: newAPI(t)}
			opts.MetricsServing.Profiling = c.address != ":0"
			m := newManager(t, opts)
			started := make(chan struct{})
			must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error { close(started); <-ctx.Done(); return nil })))
			stop, wait := run(t, m)
			<-started
			paths := []string{"http://" + local(m.HealthAddr()) + "/livez", "http://" + local(m.MetricsAddr()) + "/metrics"}
			if opts.MetricsServing.Profiling {
				paths = append(paths, "http://"+local(m.MetricsAddr())+"/debug/pprof/goroutine?debug=2", "http://"+local(m.MetricsAddr())+"/debug/pprof/")
			}
			for _, url := range paths {
				code, text := askAs(t, c.host, url)
				switch {
				case c.answers && code != http.StatusOK:
					t.Errorf("GET %s of host %q = %d %q, want 200", url, c.host, code, text)
				case !c.answers && (code != http.StatusMisdirectedRequest || !strings.Contains(text, "-allowed-hosts") || len(text) > 300):
					t.Errorf("GET %s of host %q = %d %.300q, want 421 and how to allow it", url, c.host, code, text)
				}
			}
			stop()
			must(t, wait())
		})
	}
}

// local returns the loopback address for an address of all interfaces.
func local(addr string) string {
	if port, ok := strings.CutPrefix(addr, "[::]:"); ok {
		return "127.0.0.1:" + port
	}
	return addr
}
