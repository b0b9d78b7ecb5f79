// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// requests counts what the manager's configuration sends, in the transport:
// client-go's own registration is one per process.
type requests struct {
	total *prometheus.CounterVec

	mu struct {
		sync.Mutex
		transports []http.RoundTripper // that have been wrapped
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
	// One transport is shared by all clients that log in the same way.
	if t := reflect.TypeOf(next); !t.Comparable() || !slices.Contains(r.mu.transports, next) {
		r.mu.transports = append(r.mu.transports, next)
	}
	return counted{next, r.total}
}

// closeIdle closes connections that are kept for reuse.
func (r *requests) closeIdle() {
	r.mu.Lock()
	transports := r.mu.transports
	r.mu.Unlock()
	for _, t := range transports {
		utilnet.CloseIdleConnectionsFor(t)
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
