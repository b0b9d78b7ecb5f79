// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/serve"
)

var leaseKind = coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind()

// request returns c for a Tracer.
func (c *call) request(number int) Request {
	r := Request{
		Number: number, Client: c.RemoteAddr, Verb: c.Verb,
		Key:  types.NamespacedName{Namespace: c.Namespace, Name: c.Name},
		Path: c.URL.Path, Query: c.URL.RawQuery, Agent: c.UserAgent(),
	}
	if c.Kind != nil {
		r.Kind, r.Resource, r.Subresource = c.Kind.GroupKind(), c.Kind.GroupResource(), c.Subresource
	}
	return r
}

// Reads returns how a Tracer would see r. Its number is not known before it arrives.
func (s *Server) Reads(r *http.Request) Request { return s.route(r).request(-1) }

// answers reports requests and their answers to a Tracer, and loses or damages answers.
type answers struct {
	tracer   Tracer // may be nil
	requests *faults.Requests
}

// trace reports a request now, and at its end when over is called.
func (a answers) trace(c *call, answer *recorder) (over func()) {
	if a.tracer == nil {
		return func() {}
	}
	c.traced = c.request(int(answer.number))
	a.tracer.Asked(c.traced)
	return func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			a.tracer.Panicked(c.traced, v, debug.Stack())
		}
		a.requests.Over(c.traced.Number)
		a.tracer.Answered(c.traced, answer.code)
		if v != nil {
			panic(v)
		}
	}
}

// lost reports a write to the Tracer before it is answered. It returns whether the answer is
// lost.
func (a answers) lost(c *serve.Call) bool {
	traced := callOf(c).traced
	if a.tracer != nil {
		a.tracer.Answering(traced)
	}
	return !c.Sound && a.requests.LosesResponse(traced.Number, c.Kind.GroupKind())
}

// damage returns how the answer to a list or a watch is damaged.
func (a answers) damage(c *serve.Call) faults.Damage {
	if c.Sound {
		return ""
	}
	return a.requests.ListDamage(c.Kind.GroupResource())
}

// sending reports an event to the Tracer before it is sent, and returns how it is damaged.
func (a answers) sending(c *serve.Call, e revisions.Event) faults.Damage {
	if a.tracer != nil {
		a.tracer.Sending(callOf(c).traced, tracedEvent(e))
	}
	if e.Type == revisions.Bookmark || e.Type == revisions.Failed {
		return ""
	}
	return a.requests.EventDamage(c.Kind.GroupResource())
}

// tracing reports changes to a Tracer. The store's lock guards it.
type tracing struct {
	server *Server
	last   int64 // the revision of the previous change
}

// changed reports a change.
func (t *tracing) changed(c revisions.Change) {
	traced := Change{Revision: c.Revision, Resource: c.Resource, Key: c.Key, Created: c.Before == nil, Deleted: c.After == nil}
	obj := c.Before
	if c.After != nil {
		obj = c.After
		traced.Version, _ = strconv.ParseInt(obj.Meta().GetResourceVersion(), 10, 64) // the server has set it
	}
	if stored := t.server.kinds.Stored(c.Resource); stored != nil {
		traced.Kind = stored.GroupKind()
	}
	traced.UID, traced.Generation = obj.Meta().GetUID(), obj.Meta().GetGeneration()
	if c.After != nil && traced.Kind == leaseKind {
		traced.Holder, _, _ = unstructured.NestedString(c.After.Fields, "spec", "holderIdentity")
	}
	traced.Undone = c.Revision < t.last
	t.last = c.Revision
	t.server.tracer.Stored(traced)
}

// tracedEvent returns f for a Tracer.
func tracedEvent(f revisions.Event) Event {
	e := Event{Type: f.Type}
	if f.Object != nil {
		e.Key, e.ResourceVersion = f.Object.Key(), f.Object.Meta().GetResourceVersion()
	}
	return e
}

// soundKey marks requests that no fault affects, with their User.
type soundKey struct{}

// Direct returns a transport for test code that acts as a user, who may do everything. There
// is no network, and RoundTrip returns with the complete answer. No fault affects these
// requests: they read corrupted objects as they were before. Watches are not supported.
func (s *Server) Direct(user string) http.RoundTripper { return direct{s, user} }

type direct struct {
	server *Server
	user   string
}

// RoundTrip answers r.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	user := access.User{Name: d.user, Groups: []string{access.GroupMasters, access.GroupAuthenticated}}
	r = r.Clone(context.WithValue(r.Context(), soundKey{}, user))
	r.RemoteAddr = d.user
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	d.server.ServeHTTP(answer, r)
	return answer.Result(), nil
}
