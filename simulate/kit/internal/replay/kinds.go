// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/simulate"
)

// served is a kind that the program uses.
type served struct {
	kind       string
	namespaced bool
	versions   map[string]bool
}

// serveKinds makes the server serve the kinds of the recording that it does not have.
func serveKinds(server *simulate.Server, entries []recording.Entry) error {
	found := map[schema.GroupResource]*served{}
	add := func(r schema.GroupVersionResource, kind string, namespaced bool) {
		gr := r.GroupResource()
		if kind == "" || r.Resource == "" || server.KindOf(gr).Kind != "" {
			return
		}
		if found[gr] == nil {
			found[gr] = &served{kind: kind, versions: map[string]bool{}}
		}
		found[gr].versions[r.Version] = true
		found[gr].namespaced = found[gr].namespaced || namespaced
	}
	for _, e := range entries {
		switch e.What {
		case recording.Informer:
			add(e.Kind.GroupVersion().WithResource(e.Resource), e.Kind.Kind, e.Namespaced)
		case recording.Request:
			path, _, _ := strings.Cut(e.Path, "?")
			to, ok := effects.Parse(path, "")
			var body metav1.TypeMeta
			if !ok || to.Subresource != "" || json.Unmarshal(e.Body.JSON, &body) != nil || body.APIVersion != to.Resource.GroupVersion().String() {
				continue
			}
			add(to.Resource, body.Kind, to.Key.Namespace != "")
		}
	}
	for gr, k := range found {
		if _, err := server.Put(definition(gr, k)); err != nil {
			return fmt.Errorf("serve %s: %w", gr, err)
		}
	}
	return nil
}

// definition returns a CustomResourceDefinition that accepts everything.
func definition(gr schema.GroupResource, k *served) *unstructured.Unstructured {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	var versions []any
	for i, version := range slices.Sorted(maps.Keys(k.versions)) {
		versions = append(versions, map[string]any{
			"name": version, "served": true, "storage": i == 0,
			"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			"subresources": map[string]any{"status": map[string]any{}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gr.String()},
		"spec": map[string]any{
			"group": gr.Group, "scope": scope, "versions": versions,
			"names": map[string]any{"plural": gr.Resource, "singular": strings.ToLower(k.kind), "kind": k.kind, "listKind": k.kind + "List"},
		},
	}}
}

// namespaces returns those of the recorded keys, so that the program can record Events there.
func namespaces(entries []recording.Entry) []string {
	found := map[string]bool{}
	for _, e := range entries {
		if namespace, _, is := strings.Cut(e.Key, "/"); is && namespace != "" {
			found[namespace] = true
		}
	}
	for _, first := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		delete(found, first)
	}
	return slices.Sorted(maps.Keys(found))
}
