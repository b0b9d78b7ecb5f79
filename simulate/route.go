// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/discovery"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/serve"
)

// call is one request to a resource.
type call struct {
	*http.Request
	verb            string
	user            access.User
	kind            *kinds.Kind
	namespace, name string
	subresource     string
	absent          error // what is said of a path below what there is; nil: it is no such path
	prefixed        bool  // the path asks for a watch
	encoder         encode.Encoder
	traced          Request // with a Tracer
}

// ServeHTTP answers one request, as a Kubernetes API server does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := s.route(r)
	answer := s.served.record(w, Served{At: time.Now(), Verb: c.verb, Path: c.URL.Path, Query: c.URL.RawQuery})
	defer s.trace(c, answer)()
	if err := s.letIn(c); err != nil {
		encode.Refuse(answer, c.encoder, err)
		return
	}
	if c.absent != nil {
		encode.Refuse(answer, c.encoder, c.absent)
		return
	}
	if c.kind == nil {
		s.index().ServeHTTP(answer, r)
		return
	}
	if c.kind.Warning != "" {
		if header, err := utilnet.NewWarningHeader(299, "-", c.kind.Warning); err == nil {
			answer.Header().Add("Warning", header)
		}
	}
	if err := s.serve(answer, c); err != nil {
		encode.Refuse(answer, c.encoder, err)
	}
}

// index tells of what the server serves.
func (s *Server) index() *discovery.Index {
	return &discovery.Index{Kinds: s.kinds, Version: s.version, Forbidden: s.schemasForbidden}
}

// version is the one that the server says it has.
func (s *Server) version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.version
}

// schemasForbidden refuses the documents of schemas while ForbidSchemas says so.
func (s *Server) schemasForbidden(path string) error {
	if !s.requests.SchemasForbidden() {
		return nil
	}
	return access.Forbidden(access.Attributes{User: access.User{Name: s.access.User}, Verb: "get", Path: path}, "")
}

// letIn says how c is refused before anybody looks at what it asks for.
func (s *Server) letIn(c *call) (err error) {
	if user, ok := c.Context().Value(soundKey{}).(access.User); ok {
		c.user = user
		return nil
	}
	if err = s.requests.Overloaded(); err != nil {
		return err
	}
	if c.user, err = s.access.Authenticate(c.Request); err != nil {
		return err
	}
	if err = s.access.Authorize(c.Request, c.user); err != nil {
		return err
	}
	if c.kind == nil {
		return nil
	}
	r := c.kind.GroupResource()
	return s.requests.Refused(access.Attributes{
		User: c.user, Verb: c.verb, Group: r.Group, Resource: r.Resource, Subresource: c.subresource, Namespace: c.namespace, Name: c.name,
	}, c.kind.GroupVersionKind, writes(c.verb))
}

// serve answers a request that is let in.
func (s *Server) serve(answer http.ResponseWriter, c *call) (err error) {
	if c.name != "" && c.namespace == "" && c.kind.Namespaced {
		return refusal.Absent()
	}
	if !c.kind.Allows(c.subresource, c.verb) || !c.addressed() || c.prefixed && c.verb != "watch" {
		return refusal.Method()
	}
	if err := c.encoder.Acceptable(c.Request, c.verb); err != nil {
		return err
	}
	if text := kinds.Outdated[c.kind.GroupResource().String()]; text != "" {
		serve.Warn(answer, text)
	}
	asked := &serve.Call{
		Request: c.Request, Verb: c.verb, User: c.user, Kind: c.kind, Namespace: c.namespace, Name: c.name, Subresource: c.subresource,
		Encoder: c.encoder, Sound: c.sound(), Origin: c,
	}
	if asked.Special() {
		return s.handlers.Serve(answer, asked)
	}
	switch c.verb {
	case "list":
		err = s.list(answer, c)
	case "watch":
		err = s.watch(answer, c)
	case "get":
		err = s.get(answer, c)
	default:
		err = s.handlers.Serve(answer, asked)
	}
	return err
}

// route finds out what r asks for. A call without a kind is not of a resource.
func (s *Server) route(r *http.Request) *call {
	c := &call{Request: r, verb: strings.ToLower(r.Method), encoder: encode.For(nil, r.Header.Get("Accept"))}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return c
	}
	if parts[0] == "watch" && len(parts) > 1 {
		c.prefixed, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !ofNamespace(gv, parts[2]) {
		c.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return c
	}
	kind := s.kinds.Lookup(gv, parts[0])
	if kind == nil || c.namespace != "" && !kind.Namespaced {
		if s.kinds.AnswersFor(gv) {
			c.absent = refusal.Absent()
		}
		return c
	}
	c.kind, c.encoder = kind, encode.For(kind, r.Header.Get("Accept"))
	c.encoder.Cache, c.encoder.Pretty = &s.encodings, c.encoder.Pretty || encode.WantsPretty(r)
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		if c.subresource = parts[2]; !kind.HasSubresource(c.subresource) {
			c.absent, c.kind = refusal.Absent(), nil
			if kind.Custom() {
				c.absent = apierrors.NewNotFound(kind.GroupResource(), c.name)
			}
			return c
		}
	}
	c.verb = verbOf(c)
	if c.prefixed && (c.subresource != "" || !kind.Allows("", "watch") || c.name != "" && c.namespace == "" && kind.Namespaced) {
		c.absent, c.kind = refusal.Absent(), nil
	}
	return c
}

func verbOf(c *call) string {
	switch c.Method {
	case http.MethodGet:
		switch {
		case c.prefixed:
			return "watch"
		case c.name != "":
			return "get"
		case c.watches():
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if c.name == "" {
			return "deletecollection"
		}
	}
	return strings.ToLower(c.Method)
}

// watches reports whether the query asks for a watch.
func (c *call) watches() bool {
	given, ok := c.URL.Query()["watch"]
	return ok && given[0] != "0" && !strings.EqualFold(given[0], "false")
}

// ofNamespace reports whether a word below a namespace is its subresource and
// not a kind in it.
func ofNamespace(gv schema.GroupVersion, word string) bool {
	return gv == schema.GroupVersion{Version: "v1"} && (word == "status" || word == "finalize")
}

// addressed reports whether c's path names as much as its verb needs: an object
// or all of a kind, and a namespace to write in.
func (c *call) addressed() bool {
	switch c.verb {
	case "create":
		return (c.name != "") == (c.subresource != "") && (c.namespace != "" || !c.kind.Namespaced || len(c.kind.Verbs) == 1)
	case "update", "patch", "delete":
		return c.name != "" && (c.namespace != "" || !c.kind.Namespaced)
	case "deletecollection":
		return c.namespace != "" || !c.kind.Namespaced
	}
	return true
}
