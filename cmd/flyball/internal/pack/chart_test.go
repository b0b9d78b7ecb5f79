// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/pack/internal/manifests"
)

// bases are those that the tests pack.
var bases = []struct{ dir, deployment, namespace string }{
	{"../../../../examples/operator/config", "", "frontend-operator"},
	{"../../../../examples/website/deploy", "", "website"},
	{"testdata/edited", "operator", "edited"},
}

// rendered returns the objects of a chart, as helm template gives them, by their names.
func rendered(t *testing.T, dir, namespace string, set map[string]any) map[string]map[string]any {
	t.Helper()
	var values, about map[string]any
	for file, into := range map[string]*map[string]any{"values.yaml": &values, "Chart.yaml": &about} {
		if err := yaml.Unmarshal([]byte(read(t, filepath.Join(dir, file))), into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for key, value := range set {
		at, path := values, strings.Split(key, ".")
		for _, part := range path[:len(path)-1] {
			at = at[part].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	all := template.New("chart").Option("missingkey=error")
	all.Funcs(template.FuncMap{ // what charts of pack use of Helm's functions
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": func(value any) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, text string) string {
			indent := "\n" + strings.Repeat(" ", n)
			return indent + strings.ReplaceAll(text, "\n", indent)
		},
		"quote": func(text string) string { return fmt.Sprintf("%q", text) },
		"default": func(standard, value any) any {
			if value == "" || value == nil {
				return standard
			}
			return value
		},
		"kindIs": func(kind string, value any) bool { return value == nil && kind == "invalid" },
		"int":    func(value any) int { n, _ := value.(float64); return int(n) },
		"omit": func(from map[string]any, keys ...string) map[string]any {
			out := map[string]any{}
			for key, value := range from {
				if !slices.Contains(keys, key) {
					out[key] = value
				}
			}
			return out
		},
	})
	files, err := filepath.Glob(filepath.Join(dir, "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.ParseFiles(files...); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"Values": values, "Chart": map[string]any{"AppVersion": about["appVersion"], "Name": about["name"]},
		"Release": map[string]any{"Namespace": namespace, "Name": "release"},
	}
	objects := map[string]map[string]any{}
	for _, file := range files {
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, filepath.Base(file), data); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		at := filepath.Join(t.TempDir(), "rendered.yaml")
		write(t, at, out.String())
		documents, err := manifests.Documents(at)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, out.String())
		}
		for _, o := range documents {
			objects[o.String()] = plain(t, o)
		}
	}
	return objects
}

// plain returns an object as JSON has it, without what is empty.
func plain(t *testing.T, o any) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// chartOf writes a chart.
func chartOf(t *testing.T, dir, deployment string, more ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "chart")
	mustPack(t, slices.Concat([]string{"chart", "-o", out, "-version", "v1.2.3", "-deployment", deployment}, more, []string{dir})...)
	return out
}

// With its own values, in the namespace of the base, a chart is the base.
func TestChart_IsTheBase_L4(t *testing.T) {
	for _, c := range bases {
		out := chartOf(t, c.dir, c.deployment)
		b, err := manifests.Render(c.dir, c.deployment)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]any{}
		for _, o := range b.Objects {
			if o.Kind() != "Namespace" {
				want[o.String()] = plain(t, o)
			}
		}
		got := rendered(t, out, c.namespace, map[string]any{"crds.keep": false})
		for name, w := range want {
			if !reflect.DeepEqual(got[name], w) {
				g, _ := yaml.Marshal(got[name])
				b, _ := yaml.Marshal(w)
				t.Errorf("%s: %s is\n%s\nwant\n%s", c.dir, name, g, b)
			}
		}
		for name := range got {
			if want[name] == nil {
				t.Errorf("%s: the chart has %s, and the base has not", c.dir, name)
			}
		}
		elsewhere := rendered(t, out, "elsewhere", nil)
		for name, o := range elsewhere {
			if strings.Contains(name, "CustomResourceDefinition") {
				if keep, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)["helm.sh/resource-policy"].(string); keep != "keep" {
					t.Errorf("%s: helm uninstall would delete %s", c.dir, name)
				}
				delete(o["spec"].(map[string]any), "versions")
			}
			delete(o, "data")
			delete(o["metadata"].(map[string]any), "labels")
			for _, place := range []string{`"namespace":"` + c.namespace + `"`, "." + c.namespace + ".svc", `"matchNames":["` + c.namespace + `"]`} {
				if text, _ := json.Marshal(o); strings.Contains(string(text), place) {
					t.Errorf("%s: in another namespace %s has %s:\n%s", c.dir, name, place, text)
				}
			}
		}
	}
}

// A webhook that is not called for the operator's namespace is not called for the release's.
func TestChart_SelectorsNameTheNamespaceOfTheRelease_L4(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [all.yaml]\n")
	write(t, filepath.Join(dir, "all.yaml"), operatorOf+`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks:
  - name: a.b.c
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, ns]}
        - {key: team, operator: NotIn, values: [ns]}
`)
	got, _ := json.Marshal(rendered(t, chartOf(t, dir, ""), "elsewhere", nil)["ValidatingWebhookConfiguration w"])
	for _, want := range []string{`"values":["kube-system","elsewhere"]`, `"values":["ns"]`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the webhook is %s, want %s", got, want)
		}
	}
}

func TestChart_ValuesChangeTheOperator_L4(t *testing.T) {
	out := chartOf(t, "testdata/edited", "operator")
	digest := "sha256:" + strings.Repeat("a", 64)
	got := rendered(t, out, "edited", map[string]any{
		"replicas": 3.0, "image.digest": digest, "image.pullPolicy": "Always", "args": []any{"-v=2"}, "env": []any{map[string]any{"name": "A", "value": "b"}},
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, "nodeSelector": map[string]any{"disk": "ssd"}, "tolerations": []any{},
		"affinity": map[string]any{}, "topologySpreadConstraints": []any{map[string]any{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}},
		"imagePullSecrets": []any{map[string]any{"name": "other"}}, "podLabels": map[string]any{"team": "a", "app": "operator"}, "podAnnotations": map[string]any{"x": "y"},
		"serviceAccount.annotations": map[string]any{"role": "r"}, "crds.install": false,
	})
	text, err := yaml.Marshal(got["Deployment edited/operator"])
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/values.yaml", string(text))
	if annotations := got["ServiceAccount edited/operator"]["metadata"].(map[string]any)["annotations"]; !reflect.DeepEqual(annotations, map[string]any{"role": "r"}) {
		t.Errorf("the annotations of the ServiceAccount are %v", annotations)
	}
	if got["CustomResourceDefinition things.example.com"] != nil {
		t.Error("the CustomResourceDefinition is there, and was not asked for")
	}
	golden(t, "testdata/values-file.yaml", read(t, filepath.Join(out, "values.yaml")))
	golden(t, "testdata/values-schema.json", read(t, filepath.Join(out, "values.schema.json")))
}

// A chart may be merged with what a person knows, and its image is the released one.
func TestChart_FieldsAndImageOfTheReleaseAreTaken_L4(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.yaml")
	write(t, file, "icon: https://example.com/icon.svg\nannotations: {licenses: Apache-2.0}\n")
	image := "registry.example.com/operator@sha256:" + strings.Repeat("b", 64)
	out := chartOf(t, "../../../../examples/operator/config", "", "-merge", file, "-image", image)
	if text := read(t, filepath.Join(out, "Chart.yaml")); !strings.Contains(text, "icon: https://example.com/icon.svg\n") || !strings.Contains(text, "version: 1.2.3\n") {
		t.Errorf("Chart.yaml is\n%s", text)
	}
	got, _ := json.Marshal(rendered(t, out, "x", nil)["Deployment x/frontend-operator"])
	if !strings.Contains(string(got), `"image":"`+image+`"`) {
		t.Errorf("the Deployment is %s, want the image %s", got, image)
	}
}

func TestChart_BasesThatCannotBePackedAreExplained(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	write(t, filepath.Join(none, "kustomization.yaml"), "resources: [a.yaml]\n")
	write(t, filepath.Join(none, "a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	bare := filepath.Join(dir, "bare")
	write(t, filepath.Join(bare, "kustomization.yaml"), "resources: [a.yaml]\n")
	write(t, filepath.Join(bare, "a.yaml"), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: a}]}}}\n")
	for _, c := range []struct{ base, deployment, want string }{
		{bare, "", "set namespace in kustomization.yaml"},
		{none, "", "has no Deployment; add the operator's"},
		{"testdata/edited", "", "cache, operator; name the operator's with -deployment"},
		{"testdata/edited", "missing", `no Deployment "missing"`},
		{filepath.Join(dir, "missing"), "", "render the kustomize base"},
	} {
		for _, kind := range []string{"chart", "bundle"} {
			code, _, messages := pack(t, kind, "-o", filepath.Join(dir, "out"), "-version", "1.2.3", "-deployment", c.deployment, c.base)
			if code != failure || !strings.Contains(messages, c.want) {
				t.Errorf("pack %s of %s: exit code %d, want %d, and %q in\n%s", kind, c.base, code, failure, c.want, messages)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("something was written")
	}
}

func TestOutput_FilesOfAPersonStay_L6(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"chart", "-o", out, "-version", "1.2.3", "../../../../examples/operator/config"}
	mustPack(t, args...)
	mustPack(t, args...)
	for _, c := range []struct{ file, text, want string }{
		{"values.yaml", "mine: true\n", "values.yaml was changed"},
		{"templates/mine.yaml", "mine\n", "has not written templates/mine.yaml"},
	} {
		file := filepath.Join(out, filepath.FromSlash(c.file))
		before, err := os.ReadFile(file)
		write(t, file, c.text)
		for _, kind := range []string{"chart", "bundle"} {
			code, _, messages := pack(t, append([]string{kind}, args[1:]...)...)
			if code != failure || !strings.Contains(messages, c.want) {
				t.Errorf("pack %s: exit code %d, want %d, and %q in\n%s", kind, code, failure, c.want, messages)
			}
		}
		if got := read(t, file); got != c.text {
			t.Errorf("%s has become\n%s", c.file, got)
		}
		if err != nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, before, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mustPack(t, append([]string{"bundle"}, args[1:]...)...)
	if _, err := os.Stat(filepath.Join(out, "values.yaml")); err == nil {
		t.Error("a file of the chart is among those of the bundle")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
