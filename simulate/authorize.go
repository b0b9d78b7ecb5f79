// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// attributes are what a right is about: a verb on a resource, or on a path that
// is none.
type attributes struct {
	user                                        User
	verb                                        string
	group, resource, subresource, version, name string
	namespace                                   string
	path                                        string // of what is no resource
}

// authorize says whether c may be asked for, and how it is refused. It is asked
// once, when the request arrives: an open watch goes on when the right is gone.
func (s *Server) authorize(c *call) error {
	if !s.authorization {
		return nil
	}
	return s.permit(attributesOf(c.Request, c.user))
}

// permit says how a is refused; nil: it is not.
func (s *Server) permit(a attributes) error {
	if allowed, reason := s.allowed(a); !allowed {
		return errForbidden(a, reason)
	}
	return nil
}

// allowed decides about a. The reason is what a review tells.
func (s *Server) allowed(a attributes) (bool, string) {
	if !s.authorization || a.user.in(groupMasters) {
		return true, ""
	}
	return s.policy().allows(a)
}

// whole is the resource with its subresource, as rules name it.
func (a attributes) whole() string {
	if a.subresource == "" {
		return a.resource
	}
	return a.resource + "/" + a.subresource
}

// errForbidden is a refusal, with the reason that there is for it.
func errForbidden(a attributes, reason string) *apierrors.StatusError {
	var text string
	if a.path != "" {
		text = fmt.Sprintf("User %q cannot %s path %q", a.user.Name, a.verb, a.path)
	} else {
		where := "at the cluster scope"
		if a.namespace != "" {
			where = fmt.Sprintf("in the namespace %q", a.namespace)
		}
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.user.Name, a.verb, a.whole(), a.group, where)
	}
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.group, Resource: a.resource}, a.name, fmt.Errorf("%s", text))
}

// attributesOf is what a request asks for, whether or not there is such a kind.
func attributesOf(r *http.Request, user User) attributes {
	a := attributes{user: user, verb: strings.ToLower(r.Method), path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		a.group, parts = parts[1], parts[2:]
	default:
		return a
	}
	a.path, a.version, parts = "", parts[0], parts[1:]
	if verb := verbsOfMethods[r.Method]; verb != "" {
		a.verb = verb
	}
	if (parts[0] == "watch" || parts[0] == "proxy") && len(parts) > 1 {
		a.verb, parts = parts[0], parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		a.namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	a.resource = parts[0]
	if len(parts) > 1 {
		a.name = parts[1]
	}
	if len(parts) > 2 {
		a.subresource = parts[2]
	}
	a.ofMany(r)
	return a
}

var verbsOfMethods = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// ofMany tells the verbs on one object from those on all. Who selects one name
// asks for that object alone.
func (a *attributes) ofMany(r *http.Request) {
	if a.name != "" {
		return
	}
	switch a.verb {
	case "get":
		a.verb = "list"
		switch watch := strings.ToLower(r.URL.Query().Get("watch")); watch {
		case "", "0", "false":
			if _, asked := r.URL.Query()["watch"]; asked && watch == "" {
				a.verb = "watch"
			}
		default:
			a.verb = "watch"
		}
	case "delete":
		a.verb = "deletecollection"
	}
	if a.verb != "list" && a.verb != "watch" && a.verb != "deletecollection" {
		return
	}
	if selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err == nil {
		a.name, _ = selector.RequiresExactMatch("metadata.name")
	}
}
