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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Tracer is told what happens in a Server while it happens. It may call the
// server's fault verbs, save from Stored, which does not block. Its methods are
// safe for concurrent use; what they wait, the request waits.
type Tracer interface {
	// Asked: a request has arrived, and nothing has been done for it yet.
	Asked(Request)
	// Stored: a revision was made or, by Rewind, undone. It is called with the
	// store's lock, in the order of revisions.
	Stored(Change)
	// Answering: a write was carried out, and is not answered yet.
	Answering(Request)
	// Answered: the request is over. 0: the connection broke instead.
	Answered(r Request, code int)
	// Panicked: the server has a fault of its own. The connection breaks.
	Panicked(r Request, value any, stack []byte)
	// Sending: an event is about to be sent on a watch.
	Sending(Request, Event)
}

// Request is what a Server is asked for.
type Request struct {
	// Number of the request, from 0.
	Number int
	// Client as Network.Pace names it.
	Client string
	// Verb as in Served.
	Verb string
	// Kind is empty where no resource is asked for.
	Kind schema.GroupKind
	// Resource and Subresource, as in the path.
	Resource    schema.GroupResource
	Subresource string
	// Key of the object; without a name where there is none.
	Key types.NamespacedName
	// Path and Query as they were sent.
	Path, Query string
}

// Writes reports whether the request can change something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Change is one revision.
type Change struct {
	Revision int64
	// Version of the object that is stored now; 0: it is not there. Only of what is
	// undone it is another than Revision.
	Version  int64
	Kind     schema.GroupKind
	Resource schema.GroupResource
	Key      types.NamespacedName
	// UID and Generation of the object, or of the last one that was there.
	UID        types.UID
	Generation int64
	// Holder that a Lease names; empty: it is free, or no Lease.
	Holder string
	// Created and Deleted: there was none before, there is none after.
	Created, Deleted bool
	// Undone: the revision is one that a Rewind went back to.
	Undone bool
}

// Event is what a watch is told.
type Event struct {
	Type            string // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Key             types.NamespacedName
	ResourceVersion string
}

var leaseKind = coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind()

// request is c as a Tracer sees it.
func (c *call) request(number int) Request {
	r := Request{
		Number: number, Client: c.RemoteAddr, Verb: c.verb,
		Key:  types.NamespacedName{Namespace: c.namespace, Name: c.name},
		Path: c.URL.Path, Query: c.URL.RawQuery,
	}
	if c.kind != nil {
		r.Kind, r.Resource, r.Subresource = c.kind.GroupKind(), c.kind.GroupResource(), c.subresource
	}
	return r
}

// Reads is what the server would be asked for by r, whose number is not known before it
// arrives.
func (s *Server) Reads(r *http.Request) Request { return s.route(r).request(-1) }

// trace tells of the request that answer is for, now and at its end.
func (s *Server) trace(c *call, answer *recorder) (over func()) {
	if s.tracer == nil {
		return func() {}
	}
	c.traced = c.request(int(answer.number))
	s.tracer.Asked(c.traced)
	return func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			s.tracer.Panicked(c.traced, v, debug.Stack())
		}
		s.missed(c.traced.Number)
		s.tracer.Answered(c.traced, answer.code)
		if v != nil {
			panic(v)
		}
	}
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

// sound reports whether c is asked by who plays the user.
func (c *call) sound() bool { return c.Context().Value(soundKey{}) != nil }

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
