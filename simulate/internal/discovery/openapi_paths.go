// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// everywhere is the suffix of the name of a list of all namespaces.
const everywhere = "ForAllNamespaces"

// addPaths describes the operations of a kind and its subresources.
func (d *document) addPaths(k *kinds.Kind) {
	self := kinds.Subresource{Kind: k.GroupVersionKind}
	all, scope, within := k.Path()+"/"+k.Resource, "", []spec.Parameter(nil)
	if k.Namespaced {
		if k.Allows("", "list") {
			item := d.path(all, parameters("pretty"))
			item.Get = d.operation(k, self, "list", everywhere)
		}
		all, scope = k.Path()+"/namespaces/{namespace}/"+k.Resource, "Namespaced"
		within = []spec.Parameter{parameter("namespace", "path", "string", "where the objects are")}
	}
	within = append(within, parameters("pretty")...)
	one := slices.Concat([]spec.Parameter{parameter("name", "path", "string", "of the object")}, within)
	for _, verb := range k.Verbs {
		switch op := d.operation(k, self, verb, scope); verb {
		case "get", "update", "patch", "delete":
			place(d.path(all+"/{name}", one), verb, op)
		default:
			place(d.path(all, within), verb, op)
		}
	}
	for _, sub := range k.Subresources {
		for _, verb := range sub.Verbs {
			place(d.path(all+"/{name}/"+sub.Name, one), verb, d.operation(k, sub, verb, scope))
		}
	}
}

// addDiscovery describes the discovery of a version. A real server does not describe that
// of a version with custom kinds alone.
func (d *document) addDiscovery(v servedVersion) {
	if !v.builtin() {
		return
	}
	group := identifier(v.GroupVersion)
	op := &spec.Operation{OperationProps: spec.OperationProps{
		ID: "get" + group + capital(v.Version) + "APIResources", Description: "get the kinds of this version",
		Tags: []string{lower(group) + "_" + v.Version}, Produces: mediaTypes(v.kinds[0]), Responses: answers(d.meta("APIResourceList"), http.StatusOK),
	}}
	op.Consumes = op.Produces
	d.path(v.path()+"/", nil).Get = op
}

// path returns the description of a path and creates it if necessary.
func (d *document) path(path string, parameters []spec.Parameter) *spec.PathItem {
	if d.paths[path] == nil {
		d.paths[path] = &spec.PathItem{PathItemProps: spec.PathItemProps{Parameters: parameters}}
	}
	return d.paths[path]
}

// place makes op the operation of a verb.
func place(item *spec.PathItem, verb string, op *spec.Operation) {
	switch verb {
	case "get", "list":
		item.Get = op
	case "create":
		item.Post = op
	case "update":
		item.Put = op
	case "patch":
		item.Patch = op
	case "delete", "deletecollection":
		item.Delete = op
	}
}

// identifier returns a group as part of a name: RbacAuthorization.
func identifier(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "Core"
	}
	var out strings.Builder
	for _, word := range strings.FieldsFunc(strings.TrimSuffix(gv.Group, ".k8s.io"), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		out.WriteString(capital(word))
	}
	return out.String()
}

func capital(word string) string {
	return strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
}
func lower(word string) string {
	return strings.ToLower(word[:min(1, len(word))]) + word[min(1, len(word)):]
}
