// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// middlebox stands between the informers and the server. It answers some requests
// itself, or changes them.
type middlebox struct {
	behind *http.Transport
	mu     struct {
		sync.Mutex
		answer func(*http.Request) (*http.Response, error) // nil, nil: the request goes on
	}
}

// meddle has f answer from now on; nil: all requests go on.
func (m *middlebox) meddle(f func(*http.Request) (*http.Response, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.answer = f
}

func (m *middlebox) RoundTrip(req *http.Request) (*http.Response, error) {
	m.mu.Lock()
	f := m.mu.answer
	m.mu.Unlock()
	if f != nil {
		if answer, err := f(req); answer != nil || err != nil {
			return answer, err
		}
	}
	return m.behind.RoundTrip(req)
}

func (m *middlebox) CloseIdleConnections() { m.behind.CloseIdleConnections() }

// interposed puts a middlebox before the server, for informers with opts.
func (w *world) interposed(opts informer.Options) *middlebox {
	m := &middlebox{behind: w.Network.Transport()}
	opts.Logger = w.logger()
	w.connect(&rest.Config{Host: "http://simulated", Transport: m}, w.detecting(opts))
	return m
}

func isWatch(req *http.Request) bool { return req.URL.Query().Get("watch") == "true" }

// isOf says whether req is about resource.
func isOf(req *http.Request, resource string) bool {
	return strings.HasSuffix(req.URL.Path, "/"+resource)
}

func answered(req *http.Request, code int, media string, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(body), Request: req,
	}
}
