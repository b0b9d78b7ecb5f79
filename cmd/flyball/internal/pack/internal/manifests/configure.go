// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// configure makes the values, and puts their templates into the operator's Deployment, its
// ServiceAccount and the CustomResourceDefinitions.
func (c *chart) configure() {
	deployment := c.base.Deployment
	template := Map(deployment, "spec", "template")
	pod := Map(template, "spec")
	c.image()
	c.replicas(Map(deployment, "spec"))
	c.arguments()
	c.moved(c.base.Container, "resources", "What the operator requests, and its limits.",
		fields(0, []string{"requests", "limits", "claims"}, quantities(), quantities(), listOf(anything())), map[string]any{})
	c.pod(template, pod)
	c.serviceAccount()
	c.crds()
}

// moved moves an entry of an object to the values.
func (c *chart) moved(from map[string]any, key, comment string, s schema, empty any) {
	standard := empty
	if have, ok := from[key]; ok && have != nil {
		standard = have
	}
	delete(from, key)
	from[c.slots.entry(optional(key, ".Values."+key))] = nil
	c.values = append(c.values, value{key: key, comment: comment, standard: standard, schema: s})
}

func (c *chart) image() {
	container := c.base.Container
	image := ParseImage(String(container, "image"))
	if image.Tag == "" && image.Digest == "" {
		image.Tag = "latest"
	}
	policy, _ := container["imagePullPolicy"].(string)
	container["image"] = c.slots.within(`{{ include "` + c.name + `.image" . | quote }}`)
	delete(container, "imagePullPolicy")
	container[c.slots.entry(lines("{{- with .Values.image.pullPolicy }}", "imagePullPolicy: {{ . }}", "{{- end }}"))] = nil
	c.values = append(c.values, value{key: "image", comment: "The operator's image.", parts: []value{
		{"repository", "Its name.", image.Repository, pattern(`^\S+$`), nil},
		{"tag", "Its tag. Empty: the version of the application.", image.Tag, pattern(`^(\w[\w.-]*)?$`), nil},
		{"digest", "Its digest, such as sha256:…, which wins over the tag.", image.Digest, pattern(`^(sha256:[0-9a-f]{64})?$`), nil},
		{"pullPolicy", "Always, IfNotPresent or Never. Empty: the cluster's default.", policy, oneOf("", "Always", "IfNotPresent", "Never"), nil},
	}})
}

func (c *chart) replicas(spec map[string]any) {
	standard := spec["replicas"]
	delete(spec, "replicas")
	spec[c.slots.entry(lines(`{{- if not (kindIs "invalid" .Values.replicas) }}`, "replicas: {{ int .Values.replicas }}", "{{- end }}"))] = nil
	c.values = append(c.values, value{key: "replicas", comment: "Replicas of the operator. null: whatever the Deployment has, for an autoscaler.", standard: standard,
		schema: schema{"type": []any{"integer", "null"}, "minimum": 0}})
}

// arguments adds to those of the base. Replaced ones would be lost in the next version.
func (c *chart) arguments() {
	container := c.base.Container
	have := List(container, "args")
	comment := "Arguments after those of the operator; of a flag that is there twice the last counts."
	if flags := Strings(container, "args"); len(flags) > 0 {
		comment += "\nIts own are " + strings.Join(flags, " ")
	}
	c.further(container, "args", have, comment, listOf(text()))

	var names []any
	for _, e := range Maps(container, "env") {
		names = append(names, String(e, "name"))
	}
	name := pattern(`^[^=\s]+$`)
	if len(names) > 0 {
		name["not"] = schema{"enum": names}
	}
	c.further(container, "env", List(container, "env"), "Further environment variables: name, and value or valueFrom.",
		listOf(fields(1, []string{"name", "value", "valueFrom"}, name, text(), anything())))
}

// further lets values follow the items of a list.
func (c *chart) further(at map[string]any, key string, have []any, comment string, s schema) {
	if len(have) == 0 {
		delete(at, key)
		at[c.slots.entry(optional(key, ".Values."+key))] = nil
	} else {
		at[key] = append(slices.Clone(have), c.slots.item(more(".Values."+key)))
	}
	c.values = append(c.values, value{key: key, comment: comment, standard: []any{}, schema: s})
}

func (c *chart) pod(template, pod map[string]any) {
	c.moved(pod, "nodeSelector", "Labels of the nodes that Pods run on.", texts(), map[string]any{})
	c.moved(pod, "tolerations", "Taints that Pods tolerate.", listOf(fields(0, []string{"key", "operator", "value", "effect", "tolerationSeconds"},
		text(), oneOf("Exists", "Equal", "Lt", "Gt"), text(), oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"), schema{"type": "integer"})), []any{})
	c.moved(pod, "affinity", "Rules for the choice of nodes.",
		fields(0, []string{"nodeAffinity", "podAffinity", "podAntiAffinity"}, anything(), anything(), anything()), map[string]any{})
	spread := anything()
	spread["required"] = []any{"maxSkew", "topologyKey", "whenUnsatisfiable"}
	c.moved(pod, "topologySpreadConstraints", "How Pods are spread over nodes and zones.", listOf(spread), []any{})
	c.moved(pod, "imagePullSecrets", "Secrets with credentials for the registry, such as name: registry.", listOf(fields(1, []string{"name"}, text())), []any{})

	metadata := Map(template, "metadata")
	if metadata == nil {
		metadata = map[string]any{}
		template["metadata"] = metadata
	}
	labels := Map(metadata, "labels")
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	// Those of the base stay: selectors need them.
	have, path := texts(), ".Values.podLabels"
	if len(labels) > 0 {
		fixed := schema{}
		path = "omit " + path
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			fixed[key] = schema{"const": labels[key]}
			path += fmt.Sprintf(" %q", key)
		}
		have["properties"] = fixed
	}
	labels[c.slots.entry(more(path))] = nil
	c.values = append(c.values, value{key: "podLabels", comment: "Further labels of the Pods.", standard: map[string]any{}, schema: have})
	c.annotations(metadata, "podAnnotations", "Annotations of the Pods.", ".Values.podAnnotations", &c.values)
}

// annotations moves those of an object to the values.
func (c *chart) annotations(metadata map[string]any, key, comment, path string, to *[]value) {
	standard := any(map[string]any{})
	if have, ok := metadata["annotations"]; ok && have != nil {
		standard = have
	}
	delete(metadata, "annotations")
	metadata[c.slots.entry(optional("annotations", path))] = nil
	*to = append(*to, value{key: key, comment: comment, standard: standard, schema: texts()})
}

func (c *chart) serviceAccount() {
	name := c.base.ServiceAccount()
	for _, o := range c.base.Of(Core, "ServiceAccount") {
		if o.Name() != name || o.Namespace() != c.base.Namespace {
			continue
		}
		group := value{key: "serviceAccount", comment: "The operator's ServiceAccount, " + name + "."}
		c.annotations(Map(o, "metadata"), "annotations", "Annotations, such as the role that a cloud's identity provider gives it.", ".Values.serviceAccount.annotations", &group.parts)
		c.values = append(c.values, group)
	}
}

func (c *chart) crds() {
	for _, o := range c.base.Of(Extensions, "CustomResourceDefinition") {
		c.definitions = append(c.definitions, o.Name())
		metadata := Map(o, "metadata")
		keep := "helm.sh/resource-policy: keep"
		if annotations := Map(metadata, "annotations"); len(annotations) > 0 {
			delete(annotations, "helm.sh/resource-policy")
			annotations[c.slots.entry(lines("{{- if .Values.crds.keep }}", keep, "{{- end }}"))] = nil
			continue
		}
		delete(metadata, "annotations")
		metadata[c.slots.entry(lines("{{- if .Values.crds.keep }}", "annotations:", "  "+keep, "{{- end }}"))] = nil
	}
	if len(c.definitions) == 0 {
		return
	}
	c.values = append(c.values, value{key: "crds", comment: "The CustomResourceDefinitions.", parts: []value{
		{"install", "Install and upgrade them with the release.", true, boolean(), nil},
		{"keep", "Keep them, and with them all objects of their kinds, when the release is uninstalled.", true, boolean(), nil},
	}})
}

// Describe returns a sentence on an operator.
func Describe(b *Rendered) string {
	var kinds []string
	for _, o := range b.Of(Extensions, "CustomResourceDefinition") {
		kinds = append(kinds, String(o, "spec", "names", "kind"))
	}
	slices.Sort(kinds)
	return cmp.Or(strings.TrimSuffix("Operator for "+strings.Join(slices.Compact(kinds), ", "), "Operator for "), "The operator "+b.Deployment.Name())
}
