// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
)

// document is an OpenAPI document of some kinds: their operations and schemas.
type document struct {
	paths map[string]*spec.PathItem
	types models.TypeSchemas
}

// documentOf returns the document of the kinds of some versions.
func documentOf(versions ...servedVersion) *document {
	d := &document{map[string]*spec.PathItem{}, models.TypeSchemas{Facts: models.BuiltinFacts(), Out: spec.Definitions{}}}
	for _, v := range versions {
		d.addDiscovery(v)
		for _, k := range v.kinds {
			d.addPaths(k)
			d.addCustom(k)
		}
	}
	return d
}

// modern returns the document as OpenAPI v3.
func (d *document) modern() *spec3.OpenAPI {
	out := openapiconv.ConvertV2ToV3(d.swagger())
	for _, schema := range out.Components.Schemas {
		delete(schema.Extensions, "x-kubernetes-v2-schema")
	}
	return out
}

// swagger returns the document as OpenAPI v2, with schemas of v3.
func (d *document) swagger() *spec.Swagger {
	out := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: "1.37"}},
		Paths: &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: d.types.Out,
		SecurityDefinitions: spec.SecurityDefinitions{"BearerToken": {SecuritySchemeProps: spec.SecuritySchemeProps{
			Description: "the token of a bearer", Type: "apiKey", Name: "authorization", In: "header",
		}}},
	}}
	for path, item := range d.paths {
		out.Paths.Paths[path] = *item
	}
	return out
}

// kind returns the schema of a kind.
func (d *document) kind(gvk schema.GroupVersionKind) *spec.Schema {
	typed, err := models.Scheme().New(gvk)
	if err != nil {
		return spec.RefSchema(models.RefPrefix + models.CustomModel(gvk))
	}
	return d.typed(reflect.TypeOf(typed).Elem(), gvk)
}

// typed returns the schema of the Go type of a kind.
func (d *document) typed(t reflect.Type, gvk schema.GroupVersionKind) *spec.Schema {
	d.types.Add(t)
	name := models.ModelName(t)
	d.mark(name, gvk)
	return spec.RefSchema(models.RefPrefix + name)
}

// mark adds the kind to its schema.
func (d *document) mark(name string, gvk schema.GroupVersionKind) {
	of := d.types.Out[name]
	const mark = "x-kubernetes-group-version-kind"
	before, _ := of.Extensions[mark].([]any)
	if slices.ContainsFunc(before, func(other any) bool { return reflect.DeepEqual(other, any(models.GVKFields(gvk))) }) {
		return
	}
	of.Extensions = maps.Clone(of.Extensions) // others share the schema
	of.AddExtension(mark, append(slices.Clone(before), models.GVKFields(gvk)))
	d.types.Out[name] = of
}

// list returns the schema of a list of a kind.
func (d *document) list(k *kinds.Kind) *spec.Schema {
	return d.kind(k.GroupVersion().WithKind(k.ListKind))
}

// meta returns the schema of a type that all kinds share.
func (d *document) meta(kind string) *spec.Schema {
	switch kind {
	case "DeleteOptions":
		return d.typed(reflect.TypeFor[metav1.DeleteOptions](), schema.GroupVersionKind{Version: "v1", Kind: kind})
	case "APIResourceList":
		return d.typed(reflect.TypeFor[metav1.APIResourceList](), schema.GroupVersionKind{Version: "v1", Kind: kind})
	case "Status":
		return d.typed(reflect.TypeFor[metav1.Status](), schema.GroupVersionKind{Version: "v1", Kind: kind})
	}
	d.types.Add(reflect.TypeFor[metav1.Patch]())
	return spec.RefSchema(models.RefPrefix + models.MetaModels + kind)
}

// addCustom adds the schemas of a kind without a Go type and of its lists.
func (d *document) addCustom(k *kinds.Kind) {
	if k.Builtin {
		return
	}
	d.types.Add(reflect.TypeFor[metav1.ObjectMeta]())
	d.types.Add(reflect.TypeFor[metav1.ListMeta]())
	of := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	if k.Schema != nil && k.Schema.OpenAPI() != nil {
		of = *k.Schema.OpenAPI()
	} else {
		of.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	of.Properties = rooted(of.Properties, "ObjectMeta", models.DocOf(reflect.TypeFor[corev1.Pod]())["metadata"])
	name := models.CustomModel(k.GroupVersionKind)
	d.types.Out[name] = of
	d.mark(name, k.GroupVersionKind)
	list := spec.Schema{SchemaProps: spec.SchemaProps{
		Type: spec.StringOrArray{"object"}, Required: []string{"items"}, Description: k.ListKind + " is a list of " + k.Kind,
		Properties: rooted(map[string]spec.Schema{"items": *spec.ArrayProperty(spec.RefSchema(models.RefPrefix + name)).WithDescription("List of " + k.Resource + ".")}, "ListMeta", models.DocOf(reflect.TypeFor[corev1.PodList]())["metadata"]),
	}}
	listKind := k.GroupVersion().WithKind(k.ListKind)
	d.types.Out[models.CustomModel(listKind)] = list
	d.mark(models.CustomModel(listKind), listKind)
}

// rooted adds apiVersion, kind and metadata to the fields of an object.
func rooted(properties map[string]spec.Schema, meta, about string) map[string]spec.Schema {
	out := maps.Clone(properties)
	if out == nil {
		out = map[string]spec.Schema{}
	}
	docs := models.DocOf(reflect.TypeFor[metav1.TypeMeta]())
	out["apiVersion"] = *spec.StringProperty().WithDescription(docs["apiVersion"])
	out["kind"] = *spec.StringProperty().WithDescription(docs["kind"])
	out["metadata"] = *spec.RefSchema(models.RefPrefix + models.MetaModels + meta).WithDescription(about)
	return out
}
