// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// front is a proxy of an API server, on its own port, with which a test can restart the
// server, cut connections and refuse requests. Its clients are administrators.
type front struct {
	server  server
	address string
	mu      struct {
		sync.Mutex
		to      *httputil.ReverseProxy
		refuses func(*http.Request) bool
		refused int
		writes  int
		conns   map[net.Conn]bool
	}
}

func newFront(t *testing.T, s server) *front {
	t.Helper()
	f := &front{server: s}
	f.mu.conns = map[net.Conn]bool{}
	f.lead(t, s.Config())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = "http://" + ln.Addr().String()
	server := &http.Server{Handler: f, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute, ConnState: f.keep}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return f
}

// lead forwards new requests to this server.
func (f *front) lead(t *testing.T, config *rest.Config) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.to = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		// A server that is down does not answer.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// restart kills the server, compacts its history, starts it again, and closes every
// connection.
func (f *front) restart(t *testing.T) {
	t.Helper()
	f.server.restart(t)
	f.lead(t, f.server.Config())
	f.cut()
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	to, refuse := f.mu.to, f.mu.refuses != nil && f.mu.refuses(r)
	if refuse {
		f.mu.refused++
	}
	if r.Method != http.MethodGet {
		f.mu.writes++
	}
	f.mu.Unlock()
	if refuse {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"refused by the test"}`)
		return
	}
	to.ServeHTTP(w, r)
}

// refuse answers 500 to the requests that which selects; nil selects none.
func (f *front) refuse(which func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.refuses, f.mu.refused = which, 0
}

// refusals returns the number of refused requests.
func (f *front) refusals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.refused
}

// rest waits until no write has been attempted for five polls in a row.
func (f *front) rest(t *testing.T) {
	t.Helper()
	last, same := -1, 0
	NewWithT(t).Eventually(func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		if same++; f.mu.writes != last {
			last, same = f.mu.writes, 0
		}
		return same
	}).WithTimeout(long).WithPolling(time.Second).Should(BeNumerically(">=", 5))
}

// scales reports whether a request sets the replicas of a ReplicaSet.
func scales(r *http.Request) bool {
	parts := strings.Split(r.URL.Path, "/")
	return r.Method == http.MethodPut && parts[len(parts)-2] == "replicasets"
}

// cut closes every connection.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.mu.conns {
		_ = conn.Close()
	}
}

func (f *front) keep(conn net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch state {
	case http.StateNew:
		f.mu.conns[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(f.mu.conns, conn)
	}
}

// kubeconfig writes a kubeconfig for the front.
func (f *front) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["front"] = &clientcmdapi.Cluster{Server: f.address}
	config.Contexts["front"] = &clientcmdapi.Context{Cluster: "front"}
	config.CurrentContext = "front"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
