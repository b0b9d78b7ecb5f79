// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// newLagging starts a proxy of the API server and returns a configuration for it. Watches
// arrive late, except those of Leases. The answer to a write with a context of losing is
// lost after the server has carried it out.
func newLagging(cfg *rest.Config, late time.Duration) *rest.Config {
	GinkgoHelper()
	transport, err := rest.TransportFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(cfg.Host)
	Expect(err).NotTo(HaveOccurred())
	var readers sync.WaitGroup
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(resp *http.Response) error {
			switch req := resp.Request; {
			case req.Context().Value(lostKey{}) != nil:
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				panic(http.ErrAbortHandler) // closes the connection without an answer
			case req.URL.Query().Get("watch") == "true" && !strings.Contains(req.URL.Path, "/leases"):
				resp.Body = newLateBody(resp.Body, late, &readers)
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(lostHeader) != "" {
			r = r.WithContext(losing(r.Context()))
			r.Header.Del(lostHeader)
		}
		forward.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
		readers.Wait()
	})
	out := &rest.Config{Host: server.URL, QPS: -1}
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return marking{next} })
	return out
}

// lostHeader marks a write whose answer is to be lost, lostKey its context.
const lostHeader = "Flyball-Lose-Answer"

type lostKey struct{}

// losing returns a context for writes whose answers are to be lost.
func losing(ctx context.Context) context.Context { return context.WithValue(ctx, lostKey{}, true) }

// marking adds the header to writes with a context of losing.
type marking struct{ next http.RoundTripper }

// WrappedRoundTripper lets the end of a run find the remaining connections.
func (m marking) WrappedRoundTripper() http.RoundTripper { return m.next }

func (m marking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Context().Value(lostKey{}) != nil {
		r = r.Clone(r.Context())
		r.Header.Set(lostHeader, "1")
	}
	return m.next.RoundTrip(r)
}

// lateBody delivers each part of a body some time after it has arrived.
type lateBody struct {
	io.ReadCloser
	parts  chan latePart
	part   latePart
	closed chan struct{}
	once   sync.Once
}

type latePart struct {
	due  time.Time
	data []byte
	err  error
}

func newLateBody(body io.ReadCloser, by time.Duration, readers *sync.WaitGroup) *lateBody {
	l := &lateBody{ReadCloser: body, parts: make(chan latePart, 1<<12), closed: make(chan struct{})}
	readers.Go(func() {
		for {
			buf := make([]byte, 16<<10)
			n, err := body.Read(buf)
			select {
			case l.parts <- latePart{time.Now().Add(by), buf[:n], err}:
			case <-l.closed:
				return
			}
			if err != nil {
				return
			}
		}
	})
	return l
}

func (l *lateBody) Read(out []byte) (int, error) {
	for len(l.part.data) == 0 {
		if l.part.err != nil {
			return 0, l.part.err
		}
		select {
		case l.part = <-l.parts:
		case <-l.closed:
			return 0, io.ErrClosedPipe
		}
		select {
		case <-time.After(time.Until(l.part.due)):
		case <-l.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(out, l.part.data)
	l.part.data = l.part.data[n:]
	return n, nil
}

func (l *lateBody) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.ReadCloser.Close()
}
