// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// handlerKey is what is asked for in a way of its own.
type handlerKey struct {
	resource          schema.GroupResource
	subresource, verb string
}

type handler func(s *Server, w http.ResponseWriter, c *call) error

// handlerOf is who answers c instead of the ordinary verbs; nil: those do.
func handlerOf(c *call) handler {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	core := func(resource string) schema.GroupResource { return of("", resource) }
	switch (handlerKey{c.kind.GroupResource(), c.subresource, c.verb}) {
	case handlerKey{core("pods"), "binding", "create"}, handlerKey{core("bindings"), "", "create"}:
		return (*Server).bind
	case handlerKey{core("pods"), "eviction", "create"}:
		return (*Server).evict
	case handlerKey{core("pods"), "log", "get"}:
		return (*Server).podLog
	case handlerKey{core("namespaces"), "finalize", "update"}:
		return (*Server).finalizeNamespace
	case handlerKey{core("serviceaccounts"), "token", "create"}:
		return (*Server).issueToken
	case handlerKey{of("authentication.k8s.io", "tokenreviews"), "", "create"}, handlerKey{of("authentication.k8s.io", "selfsubjectreviews"), "", "create"},
		handlerKey{of("authorization.k8s.io", "subjectaccessreviews"), "", "create"}, handlerKey{of("authorization.k8s.io", "localsubjectaccessreviews"), "", "create"},
		handlerKey{of("authorization.k8s.io", "selfsubjectaccessreviews"), "", "create"}, handlerKey{of("authorization.k8s.io", "selfsubjectrulesreviews"), "", "create"}:
		return (*Server).review
	}
	switch {
	case c.subresource == "scale" && c.kind.Scale != nil:
		return map[string]handler{"get": (*Server).getScale, "update": (*Server).putScale, "patch": (*Server).patchScale}[c.verb]
	case c.subresource == "", c.subresource == "status", c.subresource == "approval", c.subresource == "ephemeralcontainers", c.subresource == "resize":
		return nil
	}
	return (*Server).unserved
}

// unserved answers what only a node could: a Pod that is not there or has no
// node is told of as by a real server.
func (s *Server) unserved(w http.ResponseWriter, c *call) error {
	obj, err := s.find(c, 0)
	if err != nil {
		return err
	}
	node, _, _ := unstructured.NestedString(obj.Fields, "spec", "nodeName")
	switch {
	case c.kind.GroupResource().String() != "pods", node != "":
	case c.subresource == "log":
		w.WriteHeader(http.StatusNoContent) // nothing has been said yet
		return nil
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", c.name))
	}
	return apierrors.NewInternalError(fmt.Errorf("the simulated server does not serve %s/%s", c.kind.Resource, c.subresource))
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
