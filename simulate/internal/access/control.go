// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package access says who a request is of and what that user may do: certificates,
// tokens of ServiceAccounts, impersonation, and RBAC with its reviews and the rule
// that nobody grants rights that they do not have. The policy is made of the roles
// that are stored, when it is asked for after a change. The package sees what is
// stored through Objects; its lock is a leaf.
package access

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Control says who requests are of, and what they may do. It is safe for
// concurrent use.
type Control struct {
	Authorization bool   // else everybody may do everything
	User          string // who shows nothing
	Tokens        map[string]User
	Seed          uint64 // decides the key that signs tokens
	Issuer        string // of tokens of ServiceAccounts; empty: the usual one
	Objects       Objects
	// gate reports whether a token is accepted, and whether others are refused.
	Gate func(token string) (accepted, gated bool)
	mu   struct {
		sync.Mutex
		policy  *policy // nil: to be made of the roles there are
		changes int     // of roles
	}
}

// Objects are what is stored.
type Objects interface {
	// Get is one object; nil: there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Lists are the objects of some resources, all at one revision.
	Lists(of ...schema.GroupResource) [][]*object.Object
}

// Attributes are what a right is about: a verb on a resource, or on a path that
// is none.
type Attributes struct {
	User                                        User
	Verb                                        string
	Group, Resource, Subresource, version, Name string
	Namespace                                   string
	Path                                        string // of what is no resource
}

// Authorize says whether a user may ask for r, and how it is refused. It is asked
// once, when the request arrives: an open watch goes on when the right is gone.
func (x *Control) Authorize(r *http.Request, user User) error {
	if !x.Authorization {
		return nil
	}
	return x.permit(attributesOf(r, user))
}

// permit says how a is refused; nil: it is not.
func (x *Control) permit(a Attributes) error {
	if allowed, reason := x.allowed(a); !allowed {
		return Forbidden(a, reason)
	}
	return nil
}

// allowed decides about a. The reason is what a review tells.
func (x *Control) allowed(a Attributes) (bool, string) {
	if !x.Authorization || a.User.in(GroupMasters) {
		return true, ""
	}
	return x.policy().allows(a)
}

// whole is the resource with its subresource, as rules name it.
func (a Attributes) whole() string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

// Forbidden is a refusal, with the reason that there is for it.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	var text string
	if a.Path != "" {
		text = fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
	} else {
		where := "at the cluster scope"
		if a.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", a.Namespace)
		}
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.User.Name, a.Verb, a.whole(), a.Group, where)
	}
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, fmt.Errorf("%s", text))
}

// attributesOf is what a request asks for, whether or not there is such a kind.
func attributesOf(r *http.Request, user User) Attributes {
	a := Attributes{User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		a.Group, parts = parts[1], parts[2:]
	default:
		return a
	}
	a.Path, a.version, parts = "", parts[0], parts[1:]
	if verb := verbsOfMethods[r.Method]; verb != "" {
		a.Verb = verb
	}
	if (parts[0] == "watch" || parts[0] == "proxy") && len(parts) > 1 {
		a.Verb, parts = parts[0], parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		a.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	if len(parts) > 2 {
		a.Subresource = parts[2]
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
func (a *Attributes) ofMany(r *http.Request) {
	if a.Name != "" {
		return
	}
	switch a.Verb {
	case "get":
		a.Verb = "list"
		switch watch := strings.ToLower(r.URL.Query().Get("watch")); watch {
		case "", "0", "false":
			if _, asked := r.URL.Query()["watch"]; asked && watch == "" {
				a.Verb = "watch"
			}
		default:
			a.Verb = "watch"
		}
	case "delete":
		a.Verb = "deletecollection"
	}
	if a.Verb != "list" && a.Verb != "watch" && a.Verb != "deletecollection" {
		return
	}
	if selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err == nil {
		a.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
}
