// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// clusterServiceVersion describes the operator to OLM.
func (m *bundle) clusterServiceVersion(granted []*grants) (Object, error) {
	samples, err := m.samples()
	if err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	var deployments, images, permissions, clusterPermissions []any
	for _, d := range m.base.Of(Apps, "Deployment") {
		if d.Namespace() != m.base.Namespace {
			return nil, fmt.Errorf("OLM installs into one namespace, and %s is not in that of %s; leave it out in a kustomize overlay, and give that", d, m.base.Deployment)
		}
		one := map[string]any{"name": d.Name(), "spec": d["spec"]}
		m.named(Object{"kind": d.Kind(), "metadata": map[string]any{"name": d.Name()}, "spec": d["spec"]})
		if labels := Map(d, "metadata", "labels"); len(labels) > 0 {
			one["label"] = labels
		}
		deployments = append(deployments, one)
		for _, c := range Maps(d, "spec", "template", "spec", "containers") {
			images = append(images, map[string]any{"name": d.Name() + "-" + String(c, "name"), "image": String(c, "image")})
		}
	}
	for _, g := range granted {
		if len(g.roleOf) > 0 {
			permissions = append(permissions, map[string]any{"serviceAccountName": g.account, "rules": listOrEmpty(g.rules)})
		}
		if len(g.allOf) > 0 {
			clusterPermissions = append(clusterPermissions, map[string]any{"serviceAccountName": g.account, "rules": listOrEmpty(g.inAll)})
		}
	}
	strategy := map[string]any{"deployments": deployments}
	for key, value := range map[string][]any{"permissions": permissions, "clusterPermissions": clusterPermissions} {
		if len(value) > 0 {
			strategy[key] = value
		}
	}
	spec := map[string]any{
		"displayName": words(m.opts.Name), "description": m.opts.Description + ".", "version": m.opts.Version, "maturity": "alpha",
		"keywords": []any{"operator"}, "provider": map[string]any{"name": words(m.opts.Name)},
		"install": map[string]any{"strategy": "deployment", "spec": strategy},
		"installModes": []any{
			mode("OwnNamespace", false), mode("SingleNamespace", false), mode("MultiNamespace", false), mode("AllNamespaces", true),
		},
		"customresourcedefinitions": map[string]any{"owned": m.owned()},
		"relatedImages":             images,
	}
	if len(m.webhooks) > 0 {
		spec["webhookdefinitions"] = m.webhooks
	}
	csv := Object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{
			"name": m.opts.Name + ".v" + m.opts.Version, "namespace": "placeholder",
			"annotations": map[string]any{
				"alm-examples": samples, "capabilities": "Basic Install", "description": m.opts.Description,
				"containerImage":                                String(m.base.Container, "image"),
				"operators.operatorframework.io/builder":        "flyball-pack",
				"operators.operatorframework.io/project_layout": "flyball",
			},
		},
		"spec": spec,
	}
	if err := Merge(csv, m.opts.MergeFile); err != nil {
		return nil, fmt.Errorf("merge the fields of the ClusterServiceVersion: %w", err)
	}
	return csv, nil
}

// listOrEmpty is never null in JSON.
func listOrEmpty(items []any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

func mode(name string, supported bool) any {
	return map[string]any{"type": name, "supported": supported}
}

// owned describes each version of each CustomResourceDefinition.
func (m *bundle) owned() []any {
	out := []any{}
	for _, o := range m.base.Of(Extensions, "CustomResourceDefinition") {
		kind := String(o, "spec", "names", "kind")
		for _, version := range Maps(o, "spec", "versions") {
			described := String(version, "schema", "openAPIV3Schema", "description")
			first, _, _ := strings.Cut(described, "\n")
			out = append(out, map[string]any{
				"name": o.Name(), "version": String(version, "name"), "kind": kind, "displayName": spaced(kind),
				"description": cmp.Or(first, kind+" of "+String(o, "spec", "group")+"."),
			})
		}
	}
	return out
}

// words returns "Frontend Operator" for frontend-operator.
func words(name string) string {
	parts := strings.Split(name, "-")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, " ")
}

// spaced returns "Order Policy" for OrderPolicy.
func spaced(kind string) string {
	return regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(kind, "$1 $2")
}
