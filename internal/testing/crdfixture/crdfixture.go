// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdfixture makes CustomResourceDefinitions for tests. It does not
// depend on other packages of the module.
//
// # Testing
//
// Real and simulated API servers take its definitions in the suites that use it.
package crdfixture

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Integer and String are schemas of a property.
var (
	Integer = map[string]any{"type": "integer"}
	String  = map[string]any{"type": "string"}
)

// Object returns the schema of an object with these properties.
func Object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

// New defines a namespaced kind with one version, whose objects have these
// properties besides their metadata. Its plural is the lower-case kind with an
// s. subresources may be nil.
func New(kind schema.GroupVersionKind, properties, subresources map[string]any) *unstructured.Unstructured {
	singular := strings.ToLower(kind.Kind)
	version := map[string]any{
		"name": kind.Version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": Object(properties)},
	}
	if subresources != nil {
		version["subresources"] = subresources
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": singular + "s." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{
				"plural": singular + "s", "singular": singular, "kind": kind.Kind, "listKind": kind.Kind + "List",
			},
			"versions": []any{version},
		},
	}}
	return crd.DeepCopy() // shares no schema
}
