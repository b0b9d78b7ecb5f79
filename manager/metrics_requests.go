// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// requests counts what the manager's configuration sends, in the transport:
// client-go's own registration is one per process.
type requests struct {
	total *prometheus.CounterVec

	mu struct {
		sync.Mutex
		// What has been wrapped, and keeps connections for reuse. A transport is made for
		// each client that asks for an upgrade, and ends with it.
		transports []weak.Pointer[http.Transport]
	}
}

func newRequests() *requests {
	return &requests{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_requests_total",
		Help: "Requests to the API server, by status code, method and host. A watch is one request.",
	}, []string{"code", "method", "host"})}
}

// wrap has the requests through next counted.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.transports = slices.DeleteFunc(r.mu.transports, func(t weak.Pointer[http.Transport]) bool { return t.Value() == nil })
	// One transport is shared by all clients that log in the same way.
	if t := beneath(next); t != nil && !slices.Contains(r.mu.transports, weak.Make(t)) {
		r.mu.transports = append(r.mu.transports, weak.Make(t))
	}
	return counted{next, r.total}
}

// beneath is the transport that t wraps; nil: it is of another kind.
func beneath(t http.RoundTripper) *http.Transport {
	for {
		wrapper, ok := t.(utilnet.RoundTripperWrapper)
		if !ok {
			own, _ := t.(*http.Transport)
			return own
		}
		t = wrapper.WrappedRoundTripper()
	}
}

// closeIdle closes connections that are kept for reuse.
func (r *requests) closeIdle() {
	r.mu.Lock()
	transports := slices.Clone(r.mu.transports)
	r.mu.Unlock()
	for _, t := range transports {
		if alive := t.Value(); alive != nil {
			alive.CloseIdleConnections()
		}
	}
}

// counted is a transport that counts.
type counted struct {
	next  http.RoundTripper
	total *prometheus.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	code := "<error>" // as client-go's own metric says
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	if counter, err := c.total.GetMetricWithLabelValues(code, req.Method, req.URL.Host); err == nil {
		counter.Inc()
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport beneath.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }
