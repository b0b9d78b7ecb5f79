// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// Who is slow with a request is given up, who watches is not, and who asks
// nothing more has to connect again.
func TestLoopback_PatienceWithSlowClients_S24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Loopback{server: New(Options{}), log: logr.Discard()}
		server, network := l.patient(), NewNetwork()
		server.Handler = l.server // there is no TLS here
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() { _ = serveOn(ctx, network.Listener(), server) })
		// closedAfter says something, and returns when the server is done with it.
		closedAfter := func(text string) (time.Duration, string) {
			c, err := network.DialContext(ctx, "tcp", "simulated")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(c)
			return time.Since(began), string(answer)
		}
		if after, answer := closedAfter("GET /api HTTP/1.1\r\nHost: a\r\n"); after != headerWithin {
			t.Errorf("half a request: closed after %v with %q, want %v", after, answer, headerWithin)
		}
		if after, answer := closedAfter("GET /api HTTP/1.1\r\nHost: a\r\n\r\n"); after != idleFor || !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("nothing after a request: closed after %v with %q, want %v", after, answer, idleFor)
		}
		c, err := network.DialContext(ctx, "tcp", "simulated")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+mapsPath+"?watch=1&timeoutSeconds=3600&allowWatchBookmarks=1 HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || time.Since(began) != time.Hour {
			t.Errorf("a watch of an hour ended after %v with %v", time.Since(began), err)
		}
		c.Close()
	})
}

// A request that a connection had read when the server was stopped, but whose handler had
// not begun, would write to a store that is already closed.
func TestServeOn_NothingIsServedAfterTheEnd_S24(t *testing.T) {
	var served atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serveOn(ctx, NewNetwork().Listener(), server); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if why := recover(); why != http.ErrAbortHandler || served.Load() != 0 {
			t.Errorf("a request after the end: %v, served %d times, want it aborted", why, served.Load())
		}
	}()
	server.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api", nil))
}

// The deadline of a body is not one of the request.
func TestServeOn_ARequestWhoseBodyHasArrivedHasTime_S24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewNetwork()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				http.Error(w, "cut off", http.StatusGatewayTimeout)
			case <-time.After(2 * bodyWithin):
			}
		})}
		group.Go(func() { _ = serveOn(ctx, network.Listener(), server) })
		for _, body := range []string{"", "a"} {
			c, err := network.DialContext(ctx, "tcp", "simulated")
			if err != nil {
				t.Fatal(err)
			}
			ask, err := http.NewRequest(http.MethodPost, "http://a/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := ask.Write(c); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("the answer to the body %q: %v, %v, want 200", body, answer, err)
			}
			c.Close()
		}
	})
}
