// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/internal/contextvalues"
)

// Requests counts requests in the transport of the manager's configuration: client-go's
// own registration is global to the process.
type Requests struct {
	total *prometheus.CounterVec

	mu struct {
		sync.Mutex
		// Wrapped transports that keep connections for reuse. Clients that upgrade
		// connections create and drop their own transport. Transports of other types
		// come from the program's Config.
		kept  []weak.Pointer[http.Transport]
		given []idleCloser
	}
}

func NewRequests() *Requests {
	return &Requests{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_requests_total",
		Help: "Requests to the API server, by status code, method and host. A watch is one request.",
	}, []string{"code", "method", "host"})}
}

// Wrap counts the requests through next.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.kept = slices.DeleteFunc(r.mu.kept, func(t weak.Pointer[http.Transport]) bool { return t.Value() == nil })
	// All clients with the same credentials share one transport.
	switch t := beneath(next).(type) {
	case nil:
	case *http.Transport:
		if !slices.Contains(r.mu.kept, weak.Make(t)) {
			r.mu.kept = append(r.mu.kept, weak.Make(t))
		}
	default:
		if !reflect.TypeOf(t).Comparable() || !slices.Contains(r.mu.given, t) {
			r.mu.given = append(r.mu.given, t)
		}
	}
	return counted{next, r.total}
}

// Sums returns the requests so far by method and code, sorted.
func (r *Requests) Sums() (sums []RequestSum) {
	registry := prometheus.NewRegistry()
	if registry.Register(r.total) != nil {
		return nil
	}
	families, _ := registry.Gather() // of what can be gathered
	for _, f := range families {
		for _, m := range f.GetMetric() {
			one := RequestSum{Count: uint64(m.GetCounter().GetValue())}
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "method":
					one.Method = l.GetValue()
				case "code":
					one.Code = l.GetValue()
				}
			}
			if i := slices.IndexFunc(sums, func(s RequestSum) bool { return s.Method == one.Method && s.Code == one.Code }); i >= 0 {
				sums[i].Count += one.Count // of another host
			} else {
				sums = append(sums, one)
			}
		}
	}
	slices.SortFunc(sums, func(a, b RequestSum) int { return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Code, b.Code)) })
	return sums
}

// RequestSum is how many requests of a method were answered with a code, or "<error>".
type RequestSum struct {
	Method, Code string
	Count        uint64
}

type idleCloser interface{ CloseIdleConnections() }

// beneath returns the innermost transport of t, which keeps the connections; nil: none.
func beneath(t http.RoundTripper) idleCloser {
	for {
		if keeps, ok := t.(idleCloser); ok {
			return keeps
		}
		wrapper, ok := t.(utilnet.RoundTripperWrapper)
		if !ok {
			return nil
		}
		t = wrapper.WrappedRoundTripper()
	}
}

// Transports returns the number of transports known to keep connections.
func (r *Requests) Transports() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.kept)
}

// CloseIdle closes idle connections.
func (r *Requests) CloseIdle() {
	r.mu.Lock()
	transports, given := slices.Clone(r.mu.kept), slices.Clone(r.mu.given)
	r.mu.Unlock()
	for _, t := range given {
		t.CloseIdleConnections()
	}
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
	contextvalues.Moved(req.Context()) // of the reconcile that sends it, if any
	resp, err := c.next.RoundTrip(req)
	contextvalues.Moved(req.Context())
	code := "<error>" // as in client-go's metric
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	if counter, err := c.total.GetMetricWithLabelValues(code, req.Method, req.URL.Host); err == nil {
		counter.Inc()
	}
	return resp, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }
