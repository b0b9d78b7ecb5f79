// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Right is what one request needs.
type Right struct {
	Verb      string
	Group     string // empty: the core group
	Resource  string // with a subresource after a slash, such as deployments/scale
	Namespace string // empty: cluster-wide, or a cluster-scoped resource
	Name      string // empty: none, or not known
}

func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// needed returns the right that r needs. ok is false for non-resource URLs.
func needed(r *http.Request) (right Right, ok bool) {
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	// A server behind a prefix has its API below it.
	at := slices.IndexFunc(parts, func(p string) bool { return p == "api" || p == "apis" })
	if at < 0 {
		return Right{}, false
	}
	switch parts = parts[at:]; {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		right.Group, parts = parts[1], parts[3:]
	default:
		return Right{}, false
	}
	watch := r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1"
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		right.Namespace, parts = parts[1], parts[2:]
	}
	right.Resource = parts[0]
	parts = append(parts, "", "")
	if right.Name = parts[1]; parts[2] != "" {
		right.Resource += "/" + parts[2]
	}
	if right.Verb = verbOf(r.Method, watch, right.Name == ""); right.Verb == "" {
		return Right{}, false
	}
	if name, found := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); found && right.Name == "" {
		right.Name = name // RBAC lets such lists and watches pass by resourceNames
	}
	return right, true
}

// key is a right without the object that it was used for.
type key struct{ verb, group, resource string }

func (k key) String() string {
	return Right{Verb: k.verb, Group: k.group, Resource: k.resource}.String()
}

func (r Right) key() key { return key{r.Verb, r.Group, r.Resource} }

// errNothing is the error of a Check without requests.
var errNothing = errors.New("no request was recorded: pass the program's configuration through Recorder.Config, or set kit.Config.Rights")

// verbOf returns the verb of a request for an object or, with all, for a collection. It is empty
// for other methods.
func verbOf(method string, watch, all bool) string {
	verb := map[string]string{
		http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
		http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[method]
	switch {
	case verb == "get" && watch:
		return "watch"
	case verb == "get" && all:
		return "list"
	case verb == "delete" && all:
		return "deletecollection"
	}
	return verb
}
