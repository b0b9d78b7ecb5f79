// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
)

// redaction hides what must not be written.
type redaction []hiddenField

// hiddenField is a field to hide in objects of a kind.
type hiddenField struct {
	of   schema.GroupKind // or of a resource, in the place of the kind
	path []string
}

func parseRedaction(texts []string) (out redaction, err error) {
	for _, text := range texts {
		kind, path, ok := strings.Cut(text, ":")
		of := schema.ParseGroupKind(kind)
		if !ok || of.Kind == "" || path == "" || strings.Contains("."+path+".", "..") {
			return nil, fmt.Errorf("the field to redact is %q; write it as Kind.group:path.to.field, such as ConfigMap:data or Website.web.example.com:spec.password", text)
		}
		out = append(out, hiddenField{of, strings.Split(path, ".")})
	}
	return out, nil
}

// apply returns a copy of a tree without what must not be written. kind and resource may be empty.
func (r redaction) apply(kind schema.GroupKind, resource schema.GroupResource, sub string, tree any) any {
	if ops, is := tree.([]any); is { // a JSON patch
		return r.patch(kind, resource, sub, ops)
	}
	object, is := tree.(map[string]any)
	if !is {
		return redact.Value(tree)
	}
	items, list := object["items"].([]any)
	if list && sub == "" {
		out := redact.Tree(schema.GroupKind{}, "", without(object, "items"))
		each := make([]any, len(items))
		for i, item := range items {
			each[i] = r.apply(kind, resource, "", item)
		}
		out["items"] = each
		return out
	}
	as := kind
	if redact.Kind(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, sub) {
		as = schema.GroupKind{Group: resource.Group, Kind: resource.Resource}
	}
	out := redact.Tree(as, sub, object)
	for _, f := range r {
		if f.isOf(kind, resource) {
			hideAt(out, f.path)
		}
	}
	return out
}

func (f hiddenField) isOf(kind schema.GroupKind, resource schema.GroupResource) bool {
	return strings.EqualFold(f.of.Group, kind.Group) && strings.EqualFold(f.of.Kind, kind.Kind) ||
		strings.EqualFold(f.of.Group, resource.Group) && strings.EqualFold(f.of.Kind, resource.Resource)
}

// patch hides all values of a patch of an object with fields to hide: its paths may be of either.
func (r redaction) patch(kind schema.GroupKind, resource schema.GroupResource, sub string, ops []any) any {
	all := redact.Kind(kind, sub) || redact.Kind(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, sub)
	for _, f := range r {
		all = all || f.isOf(kind, resource)
	}
	out := make([]any, len(ops))
	for i, op := range ops {
		fields, is := op.(map[string]any)
		if !is {
			out[i] = redact.Value(op)
			continue
		}
		shown := redact.Tree(schema.GroupKind{}, "", fields)
		if _, has := shown["value"]; has && all {
			shown["value"] = redact.Value(fields["value"])
		}
		out[i] = shown
	}
	return out
}

func without(object map[string]any, field string) map[string]any {
	out := make(map[string]any, len(object))
	for name, value := range object {
		if name != field {
			out[name] = value
		}
	}
	return out
}

// hideAt hides the value at path, in each element of the lists on the way.
func hideAt(in any, path []string) {
	switch v := in.(type) {
	case []any:
		for _, element := range v {
			hideAt(element, path)
		}
	case map[string]any:
		value, has := v[path[0]]
		switch {
		case !has:
		case len(path) == 1:
			v[path[0]] = redact.Value(value)
		default:
			hideAt(value, path[1:])
		}
	}
}
