// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package models describes types: the Go types of built-in kinds and their codecs, the OpenAPI
// schemas of these kinds and of CRDs, and the types by which server-side apply merges objects
// (from a table that a test compares with client-go).
package models

import (
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	definitionModel      = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
	groupVersionKindMark = "x-kubernetes-group-version-kind"
)

// metaSchemas returns the OpenAPI schemas of CRDs and of metadata, by name. They must not
// be modified.
var metaSchemas = sync.OnceValue(func() map[string]*spec.Schema {
	all := map[string]*spec.Schema{}
	refer := func(name string) spec.Ref { return spec.MustCreateRef(RefPrefix + name) }
	for name, definition := range generatedopenapi.GetOpenAPIDefinitions(refer) {
		all[name] = &definition.Schema
	}
	if crd := all[definitionModel]; crd != nil {
		own := *crd
		own.Extensions = maps.Clone(own.Extensions)
		own.AddExtension(groupVersionKindMark, []any{GVKFields(DefinitionKind)})
		all[definitionModel] = &own
	}
	return all
})

// ModelOf returns the OpenAPI schema of a custom kind: its own, and the fields of every
// object.
func ModelOf(gvk schema.GroupVersionKind, structural *structuralschema.Structural) *spec.Schema {
	model := structural.Unfold().ToKubeOpenAPI()
	model.SetProperty("metadata", objectMetaModel())
	setTypeModel(model, metav1.TypeMeta{}.SwaggerDoc())
	embed(model)
	model.AddExtension(groupVersionKindMark, []any{GVKFields(gvk)})
	return model
}

func objectMetaModel() spec.Schema {
	return *spec.RefSchema(RefPrefix + MetaModels + "ObjectMeta").WithDescription(metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"])
}

func setTypeModel(model *spec.Schema, words map[string]string) {
	for _, name := range []string{"apiVersion", "kind"} {
		model.SetProperty(name, *spec.StringProperty().WithDescription(words[name]))
	}
}

// embed adds the fields of every object to the schemas of embedded objects in s.
func embed(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		embed(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		embed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		embed(s.AdditionalProperties.Schema)
	}
	if is, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); !is {
		return
	}
	setTypeModel(s, map[string]string{
		"apiVersion": "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
		"kind":       "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
	})
	s.SetProperty("metadata", objectMetaModel())
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}

// ConverterOf returns a converter that reads objects by these schemas and those of
// metadata. If they are unusable, it deduces types from the objects.
func ConverterOf(models map[string]*spec.Schema) managedfields.TypeConverter {
	all := maps.Clone(metaSchemas())
	maps.Copy(all, models)
	converter, err := managedfields.NewTypeConverter(all, false)
	if err != nil {
		return managedfields.NewDeducedTypeConverter()
	}
	return converter
}

func GVKFields(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

const MetaModels = "io.k8s.apimachinery.pkg.apis.meta.v1."

// CustomModel returns the name of the schema of a kind without a Go type: the reversed
// group, version and kind.
func CustomModel(gvk schema.GroupVersionKind) string {
	words := strings.Split(gvk.Group, ".")
	slices.Reverse(words)
	return strings.Join(append(words, gvk.Version, gvk.Kind), ".")
}

var DefinitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
