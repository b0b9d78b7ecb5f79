// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve answers the requests of HTTP to resources. It finds out what a request is about
// and what it asks for, has packages read and write carry it out, or access for reviews, and
// sends the answer once what it shows is kept.
package serve

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/read"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Call is a request to a resource.
type Call struct {
	*Target
	User    access.User
	Encoder encode.Encoder // of the answer
	// Sound: no fault harms the request.
	Sound bool
	// Origin is the request as the caller of Serve knows it.
	Origin any
}

// Handler answers requests. It is safe for concurrent use.
type Handler struct {
	Reads  *read.Reader
	Writes *write.Path
	Access *access.Control
	// Kept waits until all that is stored is in the journal.
	Kept func(ctx context.Context) error
	// IgnoresShards reports whether the shard selector of a Call is ignored.
	IgnoresShards func(c *Call) bool
	// RefusesStreams reports whether a Call gets no streaming list.
	RefusesStreams func(c *Call) bool
	// Lost reports whether the answer to a Call is lost, which was carried out.
	Lost func(c *Call) bool
	// Damage returns how the answer to a list or a watch is damaged; empty: it is not.
	Damage func(c *Call) faults.Damage
	// Sending is told each event of a watch before it is sent, and returns how it is damaged.
	Sending func(c *Call, e revisions.Event) faults.Damage
}

// Serve answers a Call, or returns why it is refused.
func (h *Handler) Serve(w http.ResponseWriter, c *Call) error {
	if c.Kind.Warning != "" {
		warn(w, c.Kind.Warning)
	}
	if err := c.Check(); err != nil {
		return err
	}
	if err := c.Encoder.Acceptable(c.Request, c.Verb); err != nil {
		return err
	}
	if text := kinds.Outdated[c.Kind.GroupResource().String()]; text != "" {
		warn(w, text)
	}
	if handle := handlerOf(c); handle != nil {
		return handle(h, w, c)
	}
	switch c.Verb {
	case "get":
		return h.get(w, c)
	case "list":
		return h.list(w, c)
	case "watch":
		return h.watch(w, c)
	case "create", "update", "patch":
		return h.write(w, c)
	case "delete":
		return h.deleteOne(w, c)
	case "deletecollection":
		return h.deleteCollection(w, c)
	}
	return apierrors.NewMethodNotSupported(c.Kind.GroupResource(), c.Verb)
}

// warn adds a warning to the header of an answer.
func warn(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}

// special is a request that is not answered like others of its verb.
type special struct {
	resource          schema.GroupResource
	subresource, verb string
}

type handler func(h *Handler, w http.ResponseWriter, c *Call) error

// handlerOf returns the handler of a special request; nil: c is an ordinary one.
func handlerOf(c *Call) handler {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	core := func(resource string) schema.GroupResource { return of("", resource) }
	switch (special{c.Kind.GroupResource(), c.Subresource, c.Verb}) {
	case special{core("pods"), "binding", "create"}, special{core("bindings"), "", "create"}:
		return (*Handler).bind
	case special{core("pods"), "eviction", "create"}:
		return (*Handler).evict
	case special{core("pods"), "log", "get"}:
		return (*Handler).podLog
	case special{core("namespaces"), "finalize", "update"}:
		return (*Handler).finalizeNamespace
	case special{core("serviceaccounts"), "token", "create"}:
		return (*Handler).issueToken
	case special{of("authentication.k8s.io", "tokenreviews"), "", "create"}, special{of("authentication.k8s.io", "selfsubjectreviews"), "", "create"},
		special{of("authorization.k8s.io", "subjectaccessreviews"), "", "create"}, special{of("authorization.k8s.io", "localsubjectaccessreviews"), "", "create"},
		special{of("authorization.k8s.io", "selfsubjectaccessreviews"), "", "create"}, special{of("authorization.k8s.io", "selfsubjectrulesreviews"), "", "create"}:
		return (*Handler).review
	}
	switch {
	case c.Subresource == "scale" && c.Kind.Scale != nil:
		return map[string]handler{"get": (*Handler).getScale, "update": (*Handler).putScale, "patch": (*Handler).patchScale}[c.Verb]
	case c.Subresource == "", c.Subresource == "status", c.Subresource == "approval", c.Subresource == "ephemeralcontainers", c.Subresource == "resize":
		return nil
	}
	return (*Handler).unserved
}
