// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// target is what the path of a request names.
type target struct {
	resource    schema.GroupVersionResource
	key         kube.Key // without a name: a collection
	subresource string
}

// parse reads the path of a request for objects, as the API server does:
//
//	/api/v1/…                 the group without a name
//	/apis/apps/v1/…           any other
//	  namespaces/prod/…       objects in a namespace
//	    deployments/web/status
//
// prefix is the path of the server itself, without a slash at its end. ok is false for a
// path that names no resource. The parts of the target are parts of path: nothing is
// allocated.
func parse(path, prefix string) (t target, ok bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return target{}, false
	}
	if rest, ok = strings.CutPrefix(rest, "/api"); !ok {
		return target{}, false
	}
	if grouped, is := strings.CutPrefix(rest, "s/"); is {
		t.resource.Group, rest = part(grouped)
		ok = t.resource.Group != ""
	} else {
		rest, ok = strings.CutPrefix(rest, "/")
	}
	if t.resource.Version, rest = part(rest); !ok || t.resource.Version == "" {
		return target{}, false
	}
	t.resource.Resource, rest = part(rest)
	t.key.Name, rest = part(rest)
	t.subresource, rest = part(rest)
	if t.resource.Resource == "namespaces" && inNamespace(t.subresource) {
		t.key.Namespace, t.resource.Resource = t.key.Name, t.subresource
		t.key.Name, rest = part(rest)
		t.subresource, rest = part(rest)
	}
	switch t.resource.Resource {
	case "", "watch", "proxy": // the last two were verbs in the path once
		return target{}, false
	}
	if t.subresource == "" {
		return t, rest == ""
	}
	return t, t.key.Name != ""
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
	switch subresource {
	case "exec", "attach", "portforward", "proxy", "log", "token":
		return false
	}
	return true
}
