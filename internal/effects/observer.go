// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/kube"
)

// Kinds knows what is watched. *informer.SharedInformerFactory does.
type Kinds interface {
	// WatchedKind returns the kind of a resource if an informer watches it, in any version.
	WatchedKind(resource schema.GroupVersionResource) (kind schema.GroupVersionKind, watched bool)
}

// Receiver receives the effects of writes. client.Observer is one.
type Receiver interface{ Observe(w kube.Written) }

// Observer reports the writes of clients. Make it with NewObserver.
type Observer struct {
	host, prefix string // of the server
	scheme       *runtime.Scheme
	kinds        Kinds
	receiver     Receiver
	known        []any // receivers whose own writes are not reported
}

// NewObserver returns an Observer that reports the writes of watched kinds to the server of cfg.
// scheme has the Go types of kinds that clients send as protobuf. Clients that report their
// writes to receiver, or to one of those behind it, are left alone.
func NewObserver(cfg *rest.Config, scheme *runtime.Scheme, kinds Kinds, receiver Receiver, behind ...Receiver) (*Observer, error) {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("observe the writes to %q: %w", cfg.Host, err)
	}
	o := &Observer{host: server.Host, prefix: strings.TrimSuffix(server.Path, "/"), scheme: scheme, kinds: kinds, receiver: receiver}
	for _, r := range append(behind, receiver) {
		if reflect.TypeOf(r).Comparable() {
			o.known = append(o.known, r)
		}
	}
	return o, nil
}

// Wrap observes the writes that pass next. The gate of leader election, if any, comes
// before it, so that what the gate refuses is not seen.
func (o *Observer) Wrap(next http.RoundTripper) http.RoundTripper { return observed{next, o} }

type observed struct {
	next http.RoundTripper
	*Observer
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t observed) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t observed) RoundTrip(req *http.Request) (*http.Response, error) {
	write, ok := t.recognize(req)
	if !ok {
		return t.next.RoundTrip(req)
	}
	ended := req.Context().Err() != nil
	resp, err := t.next.RoundTrip(req)
	code := 0
	if err == nil {
		code = resp.StatusCode
	}
	outcome := OutcomeOf(code, err)
	if outcome == Refused || ended && err != nil || code == http.StatusSwitchingProtocols {
		return resp, err
	}
	e := &exchange{Observer: t.Observer, write: write, req: req}
	if !e.complete() {
		return resp, err // a dry run
	}
	if outcome == Unknown {
		e.touched()
		return resp, err
	}
	e.follow(resp)
	return resp, nil
}

// recognize returns the write that a request is. ok is false for reads and for writes that
// are not reported from here.
func (o *Observer) recognize(req *http.Request) (write Write, ok bool) {
	if write, ok = o.write(req); !ok {
		return write, false
	}
	if to := ReportedTo(req.Context()); to != nil && slices.Contains(o.known, to) {
		return write, false
	}
	return write, true
}

// Writes returns the kind and the key of a write to an object of a watched kind, whoever reports
// it. The key of a create, and of a collection, has no name. ok is false for other requests.
func (o *Observer) Writes(req *http.Request) (kind schema.GroupVersionKind, key kube.Key, ok bool) {
	write, ok := o.write(req)
	return write.Kind, write.Key, ok
}

func (o *Observer) write(req *http.Request) (write Write, ok bool) {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	case http.MethodDelete:
		write.Verb = Delete
	default:
		return write, false
	}
	if req.URL.Host != o.host {
		return write, false
	}
	to, ok := Parse(req.URL.Path, o.prefix)
	if !ok || !changes(to.Subresource) {
		return write, false
	}
	if write.Kind, ok = o.kinds.WatchedKind(to.Resource); !ok {
		return write, false
	}
	write.Key, write.Subresource = to.Key, to.Subresource
	if write.Verb == Delete && to.Key.Name == "" {
		write.Verb = DeleteAll
	}
	return write, true
}
