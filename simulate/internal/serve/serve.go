// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve answers the requests of HTTP that write objects, and those to subresources and
// reviews. It reads what a request asks for into a write.Request, has the packages that know
// carry it out, and sends the answer once it is kept. Reads of objects are its caller's.
package serve

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Call is a request to a resource, with what its method and path ask for.
type Call struct {
	*http.Request
	Verb            string
	User            access.User
	Kind            *kinds.Kind
	Namespace, Name string
	Subresource     string
	Encoder         encode.Encoder // of the answer
	// Sound: no fault harms the request.
	Sound bool
	// Origin is the request as the caller of Serve knows it.
	Origin any
}

// Handler answers requests. It is safe for concurrent use.
type Handler struct {
	Writes *write.Path
	Access *access.Control
	// Find returns the object that a Call addresses.
	Find func(c *Call) (*object.Object, error)
	// Select returns the objects that the query of a Call selects.
	Select func(c *Call) ([]*object.Object, metav1.ListMeta, error)
	// Kept waits until all that is stored is in the journal.
	Kept func(ctx context.Context) error
	// Lost reports whether the answer to a Call is lost, which was carried out.
	Lost func(c *Call) bool
}

// Serve answers a Call, or returns why it is refused.
func (h *Handler) Serve(w http.ResponseWriter, c *Call) error {
	if handle := handlerOf(c); handle != nil {
		return handle(h, w, c)
	}
	switch c.Verb {
	case "create", "update", "patch":
		return h.write(w, c)
	case "delete":
		return h.deleteOne(w, c)
	case "deletecollection":
		return h.deleteCollection(w, c)
	}
	return apierrors.NewMethodNotSupported(c.Kind.GroupResource(), c.Verb)
}

// Special reports whether c is not answered like other Calls of its verb.
func (c *Call) Special() bool { return handlerOf(c) != nil }

// Warn adds a warning to the header of an answer.
func Warn(w http.ResponseWriter, text string) {
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
