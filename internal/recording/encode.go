// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// object returns an object of an informer as JSON, with its kind; version replaces its
// resourceVersion unless empty.
func (w *Window) object(kind schema.GroupVersionKind, obj kube.Object, version string) json.RawMessage {
	tree, err := treeOf(obj)
	if err != nil {
		tree = map[string]any{"metadata": map[string]any{"namespace": obj.GetNamespace(), "name": obj.GetName()}}
	}
	tree, _ = w.hidden.apply(kind.GroupKind(), schema.GroupResource{}, "", tree).(map[string]any)
	tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	if meta, is := tree["metadata"].(map[string]any); is {
		delete(meta, "managedFields")
		if version != "" {
			meta["resourceVersion"] = version
		}
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	return text
}

func treeOf(obj kube.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil // the redaction copies
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// body returns a body of a request or an answer.
func (w *Window) body(c Content) Body {
	switch {
	case c.Missing != "":
		return Body{Missing: c.Missing}
	case len(c.Data) == 0:
		return Body{}
	}
	tree, err := w.decode(c.Type, c.Data)
	if err != nil { // it could hold anything
		return Body{Missing: fmt.Sprintf("its %d bytes of %q are not known to be JSON", len(c.Data), c.Type)}
	}
	return Body{JSON: Hide(w.redact, c.Resource, c.Subresource, tree)}
}

// Hide returns the JSON of a body as a Window with such Options.Redact writes it. Nil: it cannot be
// written.
func Hide(fields []string, resource schema.GroupResource, sub string, tree any) json.RawMessage {
	hidden, err := parseRedaction(fields)
	if err != nil {
		return nil
	}
	var kind schema.GroupKind
	if object, is := tree.(map[string]any); is {
		version, _ := object["apiVersion"].(string)
		name, _ := object["kind"].(string)
		kind = schema.FromAPIVersionAndKind(version, name).GroupKind()
	}
	if kind.Kind == "Status" { // an error of the server repeats what it refuses
		tree = status(tree, redact.Kind(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, sub))
	}
	text, err := json.Marshal(hidden.apply(kind, resource, sub, tree))
	if err != nil {
		return nil
	}
	return text
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
