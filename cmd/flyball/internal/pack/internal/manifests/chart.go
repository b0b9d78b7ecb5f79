// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ChartOptions of a chart.
type ChartOptions struct {
	Name        string // empty: that of the Deployment
	Version     string // a semantic version
	MergeFile   string // with fields of Chart.yaml; empty: none
	Description string
}

// namespaceLabel is what each Namespace has with its name.
const namespaceLabel = "kubernetes.io/metadata.name"

const note = "{{- /* Written by flyball's pack from a kustomize base. Changes here are lost. */ -}}\n"

// ChartFiles returns the files of the chart. It changes the base.
func ChartFiles(b *Rendered, opts ChartOptions) (map[string][]byte, error) {
	opts.Name = cmp.Or(opts.Name, b.Deployment.Name())
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(opts.Name) {
		return nil, fmt.Errorf("%q is no name of a chart: it has lower-case letters, digits and dashes; give another with -name", opts.Name)
	}
	everything, err := yaml.Marshal(b.Objects)
	if err != nil {
		return nil, err
	}
	c := &chart{base: b, name: opts.Name, slots: newSlots(string(everything)), version: opts.Version}
	c.configure()
	files := map[string][]byte{
		".helmignore":            []byte(".flyball-pack\n"),
		"templates/_helpers.tpl": []byte(c.helpers()),
	}
	if err := c.templates(files); err != nil {
		return nil, err
	}
	if files["values.yaml"], err = valuesFile(c.values); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = schemaFile(c.name, c.values); err != nil {
		return nil, err
	}
	about := Object{
		"apiVersion": "v2", "type": "application", "name": c.name, "description": opts.Description,
		"version": c.version, "appVersion": c.version,
	}
	if err := Merge(about, opts.MergeFile); err != nil {
		return nil, fmt.Errorf("merge the fields of Chart.yaml: %w", err)
	}
	files["Chart.yaml"], err = yaml.Marshal(about)
	return files, err
}

type chart struct {
	base          *Rendered
	name, version string
	slots         *slots
	values        []value
	definitions   []string // their names
	labels        []string // of the Namespace, which the chart does not have
}

// templates writes a file for each kind.
func (c *chart) templates(files map[string][]byte) error {
	byKind := map[string][]string{}
	for _, o := range c.base.Objects {
		if o.Is(Core, "Namespace") && o.Name() == c.base.Namespace {
			labels := Map(o, "metadata", "labels")
			for _, key := range slices.Sorted(maps.Keys(labels)) {
				c.labels = append(c.labels, fmt.Sprintf("%s=%v", key, labels[key]))
			}
			continue
		}
		c.place(o)
		text, err := c.slots.text(o)
		if err != nil {
			return fmt.Errorf("encode %s: %w", o, err)
		}
		kind := strings.ToLower(o.Kind())
		byKind[kind] = append(byKind[kind], text)
	}
	for kind, texts := range byKind {
		text := strings.Join(texts, "---\n")
		if kind == "customresourcedefinition" {
			text = "{{- if .Values.crds.install }}\n" + text + "{{- end }}\n"
		}
		files["templates/"+kind+".yaml"] = []byte(note + text)
	}
	files["templates/NOTES.txt"] = []byte(c.notes())
	return nil
}

// place puts an object of the base's namespace into that of the release.
func (c *chart) place(o Object) {
	release := c.slots.within("{{ .Release.Namespace }}")
	quoted := c.slots.within("{{ .Release.Namespace | quote }}")
	service := regexp.MustCompile(`\.` + regexp.QuoteMeta(c.base.Namespace) + `\.svc\b`)
	var walk func(key string, value any) any
	walk = func(key string, value any) any {
		switch value := value.(type) {
		case map[string]any:
			for key, one := range value {
				inner := key
				if key == "values" && value["key"] == namespaceLabel {
					inner = namespaceLabel
				}
				value[key] = walk(inner, one)
			}
		case Object:
			for key, one := range value {
				if !slices.Contains([]string{"data", "stringData", "binaryData"}, key) {
					value[key] = walk(key, one)
				}
			}
		case []any:
			for i, one := range value {
				value[i] = walk(key, one)
			}
		case string:
			switch named := value == c.base.Namespace; {
			case named && slices.Contains([]string{"namespace", "matchNames", namespaceLabel}, key):
				return quoted
			case strings.HasPrefix(key, "cert-manager.io/inject-") && strings.HasPrefix(value, c.base.Namespace+"/"):
				return release + strings.TrimPrefix(value, c.base.Namespace)
			}
			return service.ReplaceAllLiteralString(value, "."+release+".svc")
		}
		return value
	}
	if o.Is(Extensions, "CustomResourceDefinition") { // whose schemas may have such a text
		walk("metadata", o["metadata"])
		walk("conversion", Map(o, "spec")["conversion"])
		return
	}
	walk("", o)
}

func (c *chart) helpers() string {
	return `{{/* The operator's image. A digest wins over a tag. */}}
{{- define "` + c.name + `.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}
`
}

func (c *chart) notes() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s is in the namespace {{ .Release.Namespace }}. It is ready after\n\n", c.name)
	fmt.Fprintf(&out, "    kubectl -n {{ .Release.Namespace }} rollout status deployment/%s\n", c.base.Deployment.Name())
	if len(c.labels) > 0 {
		fmt.Fprintf(&out, "\nThe namespace of the kustomize base has labels that Helm does not set:\n\n    kubectl label namespace {{ .Release.Namespace }} --overwrite %s\n", strings.Join(c.labels, " "))
	}
	if len(c.definitions) > 0 {
		fmt.Fprintf(&out, "{{- if and .Values.crds.install .Values.crds.keep }}\n\nhelm uninstall keeps the CustomResourceDefinitions and your objects. This deletes both:\n\n    kubectl delete crd %s\n{{- end }}\n", strings.Join(c.definitions, " "))
	}
	return out.String()
}
