// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// connections are the open connections of a server.
type connections struct {
	changed chan struct{} // has one token if the set has changed
	slow    atomic.Bool   // slows the client's network
	mu      struct {
		sync.Mutex
		open   map[net.Conn]http.ConnState
		dialed int
	}
}

func (c *connections) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew:
		c.mu.dialed++
		c.mu.open[conn] = s
	case http.StateClosed, http.StateHijacked:
		delete(c.mu.open, conn)
	default:
		c.mu.open[conn] = s
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// allClosed waits until no connection is open. It waits for less than an idle
// one would live.
func (c *connections) allClosed(t *testing.T) {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		c.mu.Lock()
		open, dialed := len(c.mu.open), c.mu.dialed
		c.mu.Unlock()
		if dialed == 0 {
			t.Fatal("no connection was made; this test tests nothing")
		}
		if open == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-late:
			t.Errorf("%d of %d connections are open after the run has ended, want none", open, dialed)
			return
		}
	}
}

// tlsServer serves handle with TLS on the loopback interface.
func tlsServer(t *testing.T, http2 bool, handle http.HandlerFunc) (*rest.Config, *connections) {
	t.Helper()
	c := &connections{changed: make(chan struct{}, 1)}
	c.mu.open = map[net.Conn]http.ConnState{}
	s := httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = http2
	s.Config.ConnState = c.state
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	cfg := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return slowConn{conn, &c.slow}, err
	}
	return cfg, c
}

// manyScopes share one HTTP/2 connection, which is idle once the last of their
// requests is cleaned up.
const manyScopes = 20

// slowConn sends slowly once slow is set.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c slowConn) Write(p []byte) (int, error) {
	if c.slow.Load() {
		<-time.After(2 * time.Millisecond)
	}
	return c.Conn.Write(p)
}

func TestRun_LeavesNoConnection_I10(t *testing.T) {
	const frame = `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"1"}}}` + "\n"
	const end = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	for _, stage := range []struct{ name, sent string }{
		{"before the answer", ""}, {"in a streaming list", frame}, {"in a watch", frame + end}, {"in a list", "pages"},
	} {
		for _, protocol := range []int{1, 2} {
			for _, alone := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, HTTP/%d, alone %t", stage.name, protocol, alone), func(t *testing.T) {
					there := make(chan struct{}, manyScopes)
					cfg, open := tlsServer(t, protocol == 2, func(w http.ResponseWriter, r *http.Request) {
						if r.ProtoMajor != protocol {
							t.Errorf("a request came by HTTP/%d, want HTTP/%d", r.ProtoMajor, protocol)
						}
						w.Header().Set("Content-Type", "application/json")
						switch {
						case strings.HasSuffix(r.URL.Path, "/api/v1"):
							fmt.Fprint(w, `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`)
							return
						case stage.sent == "pages":
							fmt.Fprint(w, `{"kind":"ConfigMapList","items":[`)
							_ = http.NewResponseController(w).Flush()
						case stage.sent != "":
							fmt.Fprint(w, stage.sent)
							_ = http.NewResponseController(w).Flush()
						}
						there <- struct{}{}
						<-r.Context().Done()
					})
					opts := informer.Options{PagedLists: stage.sent == "pages", ConcurrentLists: manyScopes}
					ctx, cancel := context.WithCancel(t.Context())
					var run sync.WaitGroup
					live, requests := runOf(t, cfg, opts, alone)
					run.Go(func() {
						if err := live(ctx); err != nil {
							t.Errorf("run: %v", err)
						}
					})
					for range requests {
						<-there
					}
					open.slow.Store(true)
					cancel()
					run.Wait()
					open.allClosed(t)
				})
			}
		}
	}
}

// runOf returns the run of a factory, or of an informer made by New, and the
// number of its requests in flight.
func runOf(t *testing.T, cfg *rest.Config, opts informer.Options, alone bool) (run func(context.Context) error, requests int) {
	t.Helper()
	if alone {
		lw, err := informer.NewListerWatcher[*corev1.ConfigMap](cfg, clientscheme.Scheme, listwatch.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		return informer.New(lw, corev1.SchemeGroupVersion.WithKind("ConfigMap"), opts).Run, 1
	}
	f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, opts)
	if err != nil {
		t.Fatal(err)
	}
	scope := informer.Scope{}
	for n := range manyScopes {
		scope.Namespaces = append(scope.Namespaces, fmt.Sprint("ns-", n))
	}
	informer.For[*corev1.ConfigMap](f, scope)
	return f.Run, manyScopes
}
