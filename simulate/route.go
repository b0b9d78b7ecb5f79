// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/discovery"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/serve"
)

// call is one request.
type call struct {
	serve.Call
	traced Request // with a Tracer
}

// ServeHTTP answers one request, as a Kubernetes API server does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := s.route(r)
	answer := s.served.record(w, Served{At: time.Now(), Verb: c.Verb, Path: c.URL.Path, Query: c.URL.RawQuery})
	defer s.answers.trace(c, answer)()
	if err := s.authorize(c, int(answer.number)); err != nil {
		encode.Refuse(answer, c.Encoder, err)
		return
	}
	if c.Absent != nil {
		encode.Refuse(answer, c.Encoder, c.Absent)
		return
	}
	if c.Kind == nil {
		s.index().ServeHTTP(answer, r)
		return
	}
	if err := s.handlers.Serve(answer, &c.Call); err != nil {
		encode.Refuse(answer, c.Encoder, err)
	}
}

// index returns the handler of discovery, OpenAPI and health.
func (s *Server) index() *discovery.Index {
	return &discovery.Index{Kinds: s.kinds, Version: func() string { return s.version.Load().(string) }, Forbidden: s.schemasForbidden}
}

// schemasForbidden refuses a request for schemas while ForbidSchemas is in effect.
func (s *Server) schemasForbidden(path string) error {
	if !s.requests.SchemasForbidden() {
		return nil
	}
	return access.Forbidden(access.Attributes{User: access.User{Name: s.access.User}, Verb: "get", Path: path}, "")
}

// authorize authenticates and authorizes the request with a number. Faults may refuse it.
func (s *Server) authorize(c *call, number int) (err error) {
	if user, ok := c.Context().Value(soundKey{}).(access.User); ok {
		c.User = user
		return nil
	}
	if err = s.requests.Overloaded(number); err != nil {
		return err
	}
	if c.User, err = s.access.Authenticate(c.Request); err != nil {
		return err
	}
	c.traced.User = c.User.Name
	if err = s.access.Authorize(c.Request, c.User); err != nil {
		return err
	}
	if c.Kind == nil {
		return nil
	}
	r := c.Kind.GroupResource()
	return s.requests.Refused(access.Attributes{
		User: c.User, Verb: c.Verb, Group: r.Group, Resource: r.Resource, Subresource: c.Subresource, Namespace: c.Namespace, Name: c.Name,
	}, c.Kind.GroupVersionKind, writes(c.Verb))
}

// route returns the call of a request.
func (s *Server) route(r *http.Request) *call {
	of, accept := serve.Route(r, s.kinds), r.Header.Get("Accept")
	c := &call{Call: serve.Call{Target: of, Encoder: encode.For(of.Form, accept), Sound: r.Context().Value(soundKey{}) != nil}}
	if of.Form != nil {
		c.Encoder.Cache, c.Encoder.Pretty = &s.encodings, c.Encoder.Pretty || encode.WantsPretty(r)
	}
	c.Origin = c
	return c
}

// callOf returns a Call of package serve as a call.
func callOf(c *serve.Call) *call { return c.Origin.(*call) }
