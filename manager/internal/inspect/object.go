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

// secret matches texts that are not shown wherever they are: keys, kubeconfigs and tokens.
var secret = regexp.MustCompile(`PRIVATE KEY-----|client-key-data|(?i:bearer) [A-Za-z0-9._~+/-]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.`)

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
	if confidential { // kubectl apply keeps the whole object there
		if _, has, _ := unstructured.NestedString(tree, "metadata", "annotations", lastApplied); has {
			_ = unstructured.SetNestedField(tree, hidden, "metadata", "annotations", lastApplied)
		}
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

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

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
		if all || secret.MatchString(v) {
			return hidden
		}
		return v
	}
	if all {
		return hidden
	}
	return value
}
