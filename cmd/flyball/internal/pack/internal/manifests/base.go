// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifests renders a kustomize base, finds the parts of an operator in it, and writes
// them as a Helm chart, and as a bundle for the Operator Lifecycle Manager (OLM) in the
// directories of operator-sdk. What it does not know goes into the chart as it is.
package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// Object is one of Kubernetes, with the types of encoding/json; numbers are json.Number.
type Object map[string]any

// Kind of the object.
func (o Object) Kind() string { return String(o, "kind") }

// Group of the object's API; that of core objects is empty.
func (o Object) Group() string {
	group, _, found := strings.Cut(String(o, "apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// Name of the object.
func (o Object) Name() string { return String(o, "metadata", "name") }

// Namespace of the object, or nothing.
func (o Object) Namespace() string { return String(o, "metadata", "namespace") }

// Is reports whether the object is of a kind in an API group.
func (o Object) Is(group, kind string) bool { return o.Group() == group && o.Kind() == kind }

// String names the object for a person.
func (o Object) String() string {
	if o.Namespace() == "" {
		return o.Kind() + " " + o.Name()
	}
	return o.Kind() + " " + o.Namespace() + "/" + o.Name()
}

// The API groups of the objects that have a meaning here.
const (
	Core       = ""
	Apps       = "apps"
	RBAC       = "rbac.authorization.k8s.io"
	Extensions = "apiextensions.k8s.io"
	Admission  = "admissionregistration.k8s.io"
)

// Rendered is what kubectl apply -k applies.
type Rendered struct {
	Objects    []Object
	Deployment Object // the operator's
	Container  Object // the operator's
	Namespace  string // the operator's
}

// Render runs kustomize on a directory. deployment is the name of the operator's Deployment;
// it may be empty if there is only one.
func Render(dir, deployment string) (*Rendered, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl
	options.PluginConfig = types.DisabledPluginConfig()
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("render the kustomize base %s: %w", dir, err)
	}
	b := &Rendered{}
	for _, r := range rendered.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("render the kustomize base %s: %w", dir, err)
		}
		object, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("render the kustomize base %s: %w", dir, err)
		}
		b.Objects = append(b.Objects, object)
	}
	if err := b.find(dir, deployment); err != nil {
		return nil, err
	}
	return b, nil
}

func decode(text []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object Object
	return object, decoder.Decode(&object)
}

// find finds the operator's Deployment and container.
func (b *Rendered) find(dir, name string) error {
	var names []string
	for _, o := range b.Of(Apps, "Deployment") {
		names = append(names, o.Name())
		if name == "" || name == o.Name() {
			b.Deployment = o
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("the kustomize base %s has no Deployment; add the operator's, such as config/operator.yaml of flyball new", dir)
	case b.Deployment == nil:
		return fmt.Errorf("the kustomize base %s has no Deployment %q; it has %s", dir, name, strings.Join(names, ", "))
	case len(names) > 1 && name == "":
		return fmt.Errorf("the kustomize base %s has the Deployments %s; name the operator's with -deployment", dir, strings.Join(names, ", "))
	}
	if b.Namespace = b.Deployment.Namespace(); b.Namespace == "" {
		return fmt.Errorf("%s of the kustomize base %s has no namespace, so what refers to it cannot be known; set namespace in kustomization.yaml, or give an overlay that does", b.Deployment, dir)
	}
	pod := Map(b.Deployment, "spec", "template")
	containers := Maps(pod, "spec", "containers")
	if len(containers) == 0 {
		return fmt.Errorf("%s has no containers", b.Deployment)
	}
	b.Container = containers[0]
	chosen := String(pod, "metadata", "annotations", "kubectl.kubernetes.io/default-container")
	for _, c := range containers {
		if chosen != "" && String(c, "name") == chosen {
			b.Container = c
		}
	}
	if String(b.Container, "image") == "" {
		return fmt.Errorf("the container %s of %s has no image", String(b.Container, "name"), b.Deployment)
	}
	return nil
}

// Of returns the objects of a kind.
func (b *Rendered) Of(group, kind string) []Object {
	return slices.DeleteFunc(slices.Clone(b.Objects), func(o Object) bool { return !o.Is(group, kind) })
}

// ServiceAccount returns the name of that of the operator's Pods.
func (b *Rendered) ServiceAccount() string {
	return String(b.Deployment, "spec", "template", "spec", "serviceAccountName")
}

// NamedNamespace returns the argument or the variable of the operator that names the base's
// namespace, where the operator is not bound to run.
func (b *Rendered) NamedNamespace() string {
	for _, arg := range Strings(b.Container, "args") {
		if arg == b.Namespace || strings.HasSuffix(arg, "="+b.Namespace) {
			return arg
		}
	}
	for _, e := range Maps(b.Container, "env") {
		if String(e, "value") == b.Namespace {
			return String(e, "name")
		}
	}
	return ""
}

// SetImage replaces the operator's image.
func (b *Rendered) SetImage(name string) { b.Container["image"] = name }

// Documents reads a YAML file with objects.
func Documents(file string) ([]Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []Object
	for part := range strings.SplitSeq("\n"+strings.ReplaceAll(string(text), "\r\n", "\n"), "\n---") {
		encoded, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		object, err := decode(encoded)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if object != nil {
			out = append(out, object)
		}
	}
	return out, nil
}

// Merge merges the only document in a file, as a JSON merge patch, into an object. Without a
// file it changes nothing.
func Merge(into Object, file string) error {
	if file == "" {
		return nil
	}
	parts, err := Documents(file)
	if err == nil && len(parts) != 1 {
		err = fmt.Errorf("read %s: it has %d documents, want one", file, len(parts))
	}
	if err != nil {
		return err
	}
	merged := jsontree.Merge(into, parts[0])
	clear(into)
	maps.Copy(into, merged)
	return nil
}

// SampleFile returns the base's sample, or nothing.
func SampleFile(dir string) (string, error) {
	file := filepath.Join(dir, "sample.yaml")
	_, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return file, err
}

// Map returns the object at a path, or nil.
func Map(at map[string]any, path ...string) map[string]any {
	for _, key := range path {
		at, _ = asMap(at[key])
	}
	return at
}

func asMap(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case Object:
		return value, true
	}
	return nil, false
}

// String returns the string at a path, or nothing.
func String(at map[string]any, path ...string) string {
	last := len(path) - 1
	text, _ := Map(at, path[:last]...)[path[last]].(string)
	return text
}

// List returns the list at a path, or nil.
func List(at map[string]any, path ...string) []any {
	last := len(path) - 1
	list, _ := Map(at, path[:last]...)[path[last]].([]any)
	return list
}

// Maps returns the objects in the list at a path.
func Maps(at map[string]any, path ...string) (out []Object) {
	for _, one := range List(at, path...) {
		if m, ok := asMap(one); ok {
			out = append(out, m)
		}
	}
	return out
}

// Strings returns the strings in the list at a path.
func Strings(at map[string]any, path ...string) (out []string) {
	for _, one := range List(at, path...) {
		if text, ok := one.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
