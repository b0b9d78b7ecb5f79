// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// Target is what the path of a request names.
type Target struct {
	Resource    schema.GroupVersionResource
	Key         kube.Key // without a name: a collection
	Subresource string
	// Rest is what follows the subresource, as in a proxied request.
	Rest string
}

// Parse reads the path of a request for objects, as the API server does:
//
//	/api/v1/…                 the group without a name
//	/apis/apps/v1/…           any other
//	  namespaces/prod/…       objects in a namespace
//	    deployments/web/status
//
// prefix is the path of the server itself, without a slash at its end. ok is false for a
// path that names no resource. The parts of the Target are parts of path: nothing is
// allocated.
func Parse(path, prefix string) (t Target, ok bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return Target{}, false
	}
	if rest, ok = strings.CutPrefix(rest, "/api"); !ok {
		return Target{}, false
	}
	if grouped, is := strings.CutPrefix(rest, "s/"); is {
		t.Resource.Group, rest = part(grouped)
		ok = t.Resource.Group != ""
	} else {
		rest, ok = strings.CutPrefix(rest, "/")
	}
	if t.Resource.Version, rest = part(rest); !ok || t.Resource.Version == "" {
		return Target{}, false
	}
	t.Resource.Resource, rest = part(rest)
	t.Key.Name, rest = part(rest)
	t.Subresource, rest = part(rest)
	if t.Resource.Resource == "namespaces" && inNamespace(t.Subresource) {
		t.Key.Namespace, t.Resource.Resource = t.Key.Name, t.Subresource
		t.Key.Name, rest = part(rest)
		t.Subresource, rest = part(rest)
	}
	switch t.Resource.Resource {
	case "", "watch", "proxy": // the last two were verbs in the path once
		return Target{}, false
	}
	if t.Subresource == "" {
		return t, rest == ""
	}
	t.Rest = rest
	return t, t.Key.Name != ""
}

// inNamespace reports whether what follows /namespaces/prod/ is a resource in the
// namespace, and not a subresource of the Namespace.
func inNamespace(next string) bool {
	return next != "" && next != "status" && next != "finalize"
}

// part cuts the first part off a path.
func part(path string) (first, rest string) {
	first, rest, _ = strings.Cut(path, "/")
	return first, rest
}

// changes reports whether a write to the subresource changes the object itself. Commands
// in a container, proxied requests and tokens do not.
func changes(subresource string) bool {
	return !isConnected(subresource) && subresource != "log" && subresource != "token"
}

// isConnected reports whether requests for a subresource go through the API server to another server,
// or to a process in a container.
func isConnected(subresource string) bool {
	switch subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	return false
}
