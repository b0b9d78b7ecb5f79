// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
)

// Redaction hides what must not be written: what is confidential everywhere, and the fields that
// Options.Redact names. The zero Redaction names no fields. Immutable.
type Redaction struct{ fields []hiddenField }

// hiddenField is a field to hide in objects of a kind.
type hiddenField struct {
	of   schema.GroupKind // or of a resource, in the place of the kind
	path []string
}

// ParseRedaction reads fields in the form of Options.Redact.
func ParseRedaction(fields []string) (r Redaction, err error) {
	for _, text := range fields {
		kind, path, ok := strings.Cut(text, ":")
		of := schema.ParseGroupKind(kind)
		if !ok || of.Kind == "" || path == "" || strings.Contains("."+path+".", "..") {
			return Redaction{}, fmt.Errorf("the field to redact is %q; write it as Kind.group:path.to.field, such as ConfigMap:data or Website.web.example.com:spec.password", text)
		}
		r.fields = append(r.fields, hiddenField{of, strings.Split(path, ".")})
	}
	return r, nil
}

// Hide returns the JSON of a body of a request to a resource, or of its answer, as a Window with
// such Options.Redact writes it. Nil: fields are invalid, or it cannot be written.
func Hide(fields []string, resource schema.GroupResource, sub string, tree any) json.RawMessage {
	r, err := ParseRedaction(fields)
	if err != nil {
		return nil
	}
	return r.Hide(resource, sub, tree)
}

// Hide returns the JSON of a body of a request to a resource, or of its answer. tree is the body as
// JSON values, which are not changed. Nil: it cannot be written.
func (r Redaction) Hide(resource schema.GroupResource, sub string, tree any) json.RawMessage {
	kind := kindOf(tree)
	if kind.Kind == "Status" { // an error of the server repeats what it refuses
		tree = status(tree, r.covers(resource, sub))
	}
	text, err := json.Marshal(r.apply(kind, resource, sub, tree))
	if err != nil {
		return nil
	}
	return text
}

// kindOf returns the kind that a body names, if it does.
func kindOf(tree any) schema.GroupKind {
	object, _ := tree.(map[string]any)
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind).GroupKind()
}

// status returns a Status without its texts if it is about a confidential object.
func status(tree any, confidential bool) any {
	fields, is := tree.(map[string]any)
	if !is || !confidential {
		return tree
	}
	out := without(fields, "message")
	if details, is := out["details"].(map[string]any); is {
		out["details"] = without(details, "causes")
	}
	return out
}

// covers reports whether a resource is confidential, or some of its fields are hidden.
func (r Redaction) covers(resource schema.GroupResource, sub string) bool {
	var unknown schema.GroupKind
	return redact.Kind(confidentialKind(unknown, resource, sub), sub) || len(r.of(unknown, resource)) > 0
}

// confidentialKind returns the kind of an object that decides whether it is confidential: its own,
// unless the resource is.
func confidentialKind(kind schema.GroupKind, resource schema.GroupResource, sub string) schema.GroupKind {
	switch {
	case resource.Group == "" && resource.Resource == "serviceaccounts" && sub == "token":
		return schema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenRequest"}
	case resource.Group == "authentication.k8s.io" && resource.Resource == "tokenreviews":
		return schema.GroupKind{Group: resource.Group, Kind: "TokenReview"}
	}
	if is := (schema.GroupKind{Group: resource.Group, Kind: resource.Resource}); redact.Kind(is, sub) {
		return is
	}
	return kind
}

// of returns the fields to hide in an object of a kind or a resource, either of which may be empty.
// A kind matches its resource, and the reverse, by the regular plurals: bodies such as patches do
// not name their kind.
func (r Redaction) of(kind schema.GroupKind, resource schema.GroupResource) (paths [][]string) {
	for _, f := range r.fields {
		if strings.EqualFold(f.of.Group, kind.Group) && sameName(f.of.Kind, kind.Kind) ||
			strings.EqualFold(f.of.Group, resource.Group) && sameName(f.of.Kind, resource.Resource) {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// sameName reports whether a and b are the same word, in any case, or one is the plural of the other.
func sameName(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a != "" && b != "" && (a == b || isPlural(a, b) || isPlural(b, a))
}

func isPlural(of, text string) bool {
	stem, ends := strings.CutSuffix(of, "y")
	return text == of+"s" || text == of+"es" || ends && text == stem+"ies"
}

// apply returns a copy of a tree without what must not be written. kind and resource may be empty.
func (r Redaction) apply(kind schema.GroupKind, resource schema.GroupResource, sub string, tree any) any {
	switch v := tree.(type) {
	case []any: // a JSON patch
		return r.patch(kind, resource, sub, v)
	case map[string]any:
		of, isList := strings.CutSuffix(kind.Kind, "List")
		if items, has := v["items"].([]any); has && isList && sub == "" {
			return r.list(schema.GroupKind{Group: kind.Group, Kind: of}, resource, v, items)
		}
		return r.object(kind, resource, sub, v)
	}
	return redact.Value(tree)
}

// list hides in each item of a list. kind is that of the items which do not name theirs.
func (r Redaction) list(kind schema.GroupKind, resource schema.GroupResource, list map[string]any, items []any) any {
	out := r.object(kind, resource, "", without(list, "items"))
	each := make([]any, len(items))
	for i, item := range items {
		own := kindOf(item)
		if own.Kind == "" {
			own = kind
		}
		if _, is := item.(map[string]any); is {
			each[i] = r.apply(own, resource, "", item)
		} else {
			each[i] = redact.Value(item)
		}
	}
	out["items"] = each
	return out
}

func (r Redaction) object(kind schema.GroupKind, resource schema.GroupResource, sub string, object map[string]any) map[string]any {
	out := redact.Tree(confidentialKind(kind, resource, sub), sub, object)
	paths := r.of(kind, resource)
	for _, path := range paths {
		hideAt(out, path)
	}
	if len(paths) > 0 {
		hideCopies(out)
	}
	return out
}

// hideCopies hides where an object with hidden fields repeats them: several tools keep the whole
// object in an annotation, and a Table has columns of it.
func hideCopies(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for name, value := range annotations {
		text, _ := value.(string)
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			annotations[name] = redact.Hidden
		}
	}
	if rows, has := object["rows"]; has && object["kind"] == "Table" {
		object["rows"] = redact.Value(rows)
	}
}

// patch hides all values of a patch of an object with fields to hide: its paths may be of either.
func (r Redaction) patch(kind schema.GroupKind, resource schema.GroupResource, sub string, ops []any) any {
	all := redact.Kind(confidentialKind(kind, resource, sub), sub) || len(r.of(kind, resource)) > 0
	out := make([]any, len(ops))
	for i, op := range ops {
		fields, is := op.(map[string]any)
		if !is {
			out[i] = redact.Value(op)
			continue
		}
		shown := redact.Tree(schema.GroupKind{}, "", fields)
		if value, has := shown["value"]; has && all {
			shown["value"] = redact.Value(value)
		} else if path, _ := fields["path"].(string); has {
			shown["value"] = redact.Field(path[strings.LastIndexByte(path, '/')+1:], value)
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
