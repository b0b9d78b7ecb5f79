// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Target is a request with what it is about: the verb, and the kind, object and subresource
// that its path names.
type Target struct {
	*http.Request
	Verb            string      // get, list, watch, create, update, patch, delete, deletecollection; else the method
	Kind            *kinds.Kind // nil: the path names none that is served
	Namespace, Name string
	Subresource     string
	// Form is Kind, or the kind of which the path names something that there is not.
	Form *kinds.Kind
	// Absent refuses a path that names something that there is not. nil: Kind is served, or the
	// path is not one of resources.
	Absent error
	// prefixed means that the path asks for a watch.
	prefixed bool
}

// Route finds out what a request is about.
func Route(r *http.Request, served *kinds.Registry) *Target {
	c := &Target{Request: r, Verb: strings.ToLower(r.Method)}
	gv, parts := splitVersion(r.URL.Path)
	if parts == nil {
		return c
	}
	if parts[0] == "watch" && len(parts) > 1 {
		c.prefixed, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !ofNamespace(gv, parts[2]) {
		c.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return c
	}
	kind := served.Lookup(gv, parts[0])
	if kind == nil || c.Namespace != "" && !kind.Namespaced {
		if served.AnswersFor(gv) {
			c.Absent = refusal.Absent()
		}
		return c
	}
	c.Kind, c.Form = kind, kind
	parts = append(parts, "", "")
	c.Name, c.Subresource = parts[1], parts[2]
	if c.Subresource != "" && !kind.HasSubresource(c.Subresource) {
		c.Absent, c.Kind = refusal.Absent(), nil
		if kind.Custom() {
			c.Absent = apierrors.NewNotFound(kind.GroupResource(), c.Name)
		}
		return c
	}
	c.Verb = c.verb()
	if !c.watchable() {
		c.Absent, c.Kind = refusal.Absent(), nil
	}
	return c
}

// splitVersion returns the version of a resource's path, and what follows it; nil: it is not such a
// path.
func splitVersion(path string) (gv schema.GroupVersion, rest []string) {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case len(parts) > 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	}
	return gv, nil
}

// watchable reports whether a path that asks for a watch names what can be watched.
func (c *Target) watchable() bool {
	return !c.prefixed || c.Subresource == "" && c.Kind.Allows("", "watch") && (c.Name == "" || c.Namespace != "" || !c.Kind.Namespaced)
}

func (c *Target) verb() string {
	switch c.Method {
	case http.MethodGet:
		switch {
		case c.prefixed:
			return "watch"
		case c.Name != "":
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
		if c.Name == "" {
			return "deletecollection"
		}
	}
	return strings.ToLower(c.Method)
}

// watches reports whether the query asks for a watch.
func (c *Target) watches() bool {
	given, ok := c.URL.Query()["watch"]
	return ok && given[0] != "0" && !strings.EqualFold(given[0], "false")
}

// ofNamespace reports whether a word after the name of a namespace is a subresource of
// namespaces and not a resource in it.
func ofNamespace(gv schema.GroupVersion, word string) bool {
	return gv == schema.GroupVersion{Version: "v1"} && (word == "status" || word == "finalize")
}

// Check refuses a Call with a Kind that does not support the verb, or whose path names too
// little or too much for it.
func (c *Target) Check() error {
	if c.Name != "" && c.Namespace == "" && c.Kind.Namespaced {
		return refusal.Absent()
	}
	if !c.Kind.Allows(c.Subresource, c.Verb) || !c.addressed() || c.prefixed && c.Verb != "watch" {
		return refusal.Method()
	}
	return nil
}

// addressed reports whether the path names as much as the verb needs: an object or all objects
// of a kind, and a namespace to write in.
func (c *Target) addressed() bool {
	switch c.Verb {
	case "create":
		return (c.Name != "") == (c.Subresource != "") && (c.Namespace != "" || !c.Kind.Namespaced || len(c.Kind.Verbs) == 1)
	case "update", "patch", "delete":
		return c.Name != "" && (c.Namespace != "" || !c.Kind.Namespaced)
	case "deletecollection":
		return c.Namespace != "" || !c.Kind.Namespaced
	}
	return true
}
