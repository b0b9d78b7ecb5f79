// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// object returns an object of an informer as JSON, with its kind; version replaces its
// resourceVersion unless empty. resource may be empty. Nil: it cannot be written.
func (w *Window) object(
	kind schema.GroupVersionKind, resource string, obj kube.Object, version string,
) json.RawMessage {
	tree, err := redact.Fields(obj)
	if err != nil {
		tree = map[string]any{"metadata": map[string]any{"namespace": obj.GetNamespace(), "name": obj.GetName()}}
	}
	of := schema.GroupResource{Group: kind.Group, Resource: resource}
	tree = w.hidden.object(kind.GroupKind(), of, "", tree)
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
	return Body{JSON: w.hidden.Hide(c.Resource, c.Subresource, tree)}
}
