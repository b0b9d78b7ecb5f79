// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

const (
	mostYAML = 256 << 10 // bytes
	hidden   = "(hidden)"
)

// secret matches texts that look like a credential: keys, tokens, kubeconfigs and other settings with
// a password.
var secret = regexp.MustCompile(`PRIVATE KEY-----|(?i:bearer|basic) [A-Za-z0-9._~+/=-]{8,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}` +
	`|\bgh[pousr]_[A-Za-z0-9]{16,}|\bAKIA[A-Z0-9]{16}\b|(?i:password|passwd|secret|token|api[_-]?key|client-key-data)["']?\s*[:=]\s*\S|://[^/\s:@]+:[^/\s@]+@`)

// textOf returns text, unless it looks like a credential.
func textOf(text string) string {
	if secret.MatchString(text) {
		return hidden
	}
	return text
}

// objectOf returns obj as text. Values of confidential kinds, and texts that look like a
// credential, are hidden.
func objectOf(kind schema.GroupVersionKind, obj kube.Object) (*Object, error) {
	tree, err := treeOf(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s %s: %w", kind.Kind, kube.KeyOf(obj), err)
	}
	out := &Object{Kind: kind.Kind}
	for _, owner := range obj.GetOwnerReferences() {
		out.Owners = append(out.Owners, owner.Kind+" "+owner.Name)
	}
	tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	unstructured.RemoveNestedField(tree, "metadata", "managedFields")
	confidential := redact.Kind(kind.GroupKind(), "")
	for field, value := range tree {
		if confidential && field != "apiVersion" && field != "kind" && field != "metadata" {
			tree[field] = hide(value, true)
		} else {
			tree[field] = hide(value, false)
		}
	}
	if annotations, has, _ := unstructured.NestedMap(tree, "metadata", "annotations"); confidential && has {
		hide(annotations, true) // several tools keep the whole object there
		_ = unstructured.SetNestedMap(tree, annotations, "metadata", "annotations")
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("show %s %s: %w", kind.Kind, kube.KeyOf(obj), err)
	}
	if out.YAML = string(text); len(text) > mostYAML {
		out.YAML = string(text[:mostYAML]) + fmt.Sprintf("\n… %d bytes more", len(text)-mostYAML)
	}
	return out, nil
}

// treeOf returns a copy of obj as JSON values.
func treeOf(obj kube.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// hide returns value without what must not be shown; all: without any value.
func hide(value any, all bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = hide(field, all)
		}
		return v
	case []any:
		for i, element := range v {
			v[i] = hide(element, all)
		}
		return v
	case string:
		if all {
			return hidden
		}
		return textOf(v)
	}
	if all {
		return hidden
	}
	return value
}
