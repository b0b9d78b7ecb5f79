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

// request is c as a Tracer sees it.
func (c *call) request(number int) Request {
	r := Request{
		Number: number, Client: c.RemoteAddr, Verb: c.Verb,
		Key:  types.NamespacedName{Namespace: c.Namespace, Name: c.Name},
		Path: c.URL.Path, Query: c.URL.RawQuery,
	}
	if c.Kind != nil {
		r.Kind, r.Resource, r.Subresource = c.Kind.GroupKind(), c.Kind.GroupResource(), c.Subresource
	}
	return r
}

// Reads is what the server would be asked for by r, whose number is not known before it
// arrives.
func (s *Server) Reads(r *http.Request) Request { return s.route(r).request(-1) }

// answers tells a Tracer of requests and their answers, and lets faults lose and damage answers.
type answers struct {
	tracer   Tracer // nil: there is none
	requests *faults.Requests
}

// trace tells of the request that answer is for, now and at its end.
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

// lost tells of a write that is about to be answered, and reports whether its answer is lost.
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

// sending tells of an event that is about to be sent, and returns how it is damaged.
func (a answers) sending(c *serve.Call, e revisions.Event) faults.Damage {
	if a.tracer != nil {
		a.tracer.Sending(callOf(c).traced, tracedEvent(e))
	}
	if e.Type == revisions.Bookmark || e.Type == revisions.Failed {
		return ""
	}
	return a.requests.EventDamage(c.Kind.GroupResource())
}

// tracing tells a Tracer of changes. The store's lock guards it.
type tracing struct {
	server *Server
	last   int64 // the revision of the change before
}

// changed tells of a change.
func (t *tracing) changed(c revisions.Change) {
	traced := Change{Revision: c.Revision, Resource: c.Resource, Key: c.Key, Created: c.Before == nil, Deleted: c.After == nil}
	obj := c.Before
	if c.After != nil {
		obj = c.After
		traced.Version, _ = strconv.ParseInt(obj.Meta().GetResourceVersion(), 10, 64) // the server's own
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

// tracedEvent is f as a Tracer sees it.
func tracedEvent(f revisions.Event) Event {
	e := Event{Type: f.Type}
	if f.Object != nil {
		e.Key, e.ResourceVersion = f.Object.Key(), f.Object.Meta().GetResourceVersion()
	}
	return e
}

// soundKey marks requests that no fault harms, with their User.
type soundKey struct{}

// Direct is a way to the server for who plays the user, as user, who may do
// everything: no network lies between, the request is answered before RoundTrip
// returns, and no fault of the server harms it: what is poisoned it sees as it
// was. It is not for watches.
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
