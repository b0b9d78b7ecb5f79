// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// Object is an object as it is cached, with what must not be shown hidden.
type Object struct {
	Kind string
	// Owners as "Kind name".
	Owners []string
	YAML   string
}

const mostYAML = 256 << 10 // bytes

// objectOf returns obj as text. Values of confidential kinds, and texts that look like a
// credential, are hidden.
func objectOf(kind schema.GroupVersionKind, obj kube.Object) (*Object, error) {
	tree, err := redact.Fields(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s %s: %w", kind.Kind, kube.KeyOf(obj), err)
	}
	out := &Object{Kind: kind.Kind}
	for _, owner := range obj.GetOwnerReferences() {
		out.Owners = append(out.Owners, owner.Kind+" "+owner.Name)
	}
	tree = redact.Tree(kind.GroupKind(), "", tree)
	tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	unstructured.RemoveNestedField(tree, "metadata", "managedFields")
	text, err := yaml.Marshal(tree)
	text = bytes.ReplaceAll(text, []byte(redact.HiddenBytes), []byte(redact.Hidden)) // it need not be valid here
	if err != nil {
		return nil, fmt.Errorf("show %s %s: %w", kind.Kind, kube.KeyOf(obj), err)
	}
	if out.YAML = string(text); len(text) > mostYAML {
		out.YAML = string(text[:mostYAML]) + fmt.Sprintf("\n… %d bytes more", len(text)-mostYAML)
	}
	return out, nil
}
