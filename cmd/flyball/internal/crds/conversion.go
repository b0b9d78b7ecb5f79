// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

const conversionMarker = "flyball:conversion"

// Conversion is the marker +flyball:conversion: a webhook converts between the versions.
//
//	// +flyball:conversion:namespace=website,service=website-webhooks
type Conversion struct {
	// Namespace and Service lead to the webhook.
	Namespace, Service string
	// Path of the webhook. Default: /convert, which package webhook serves.
	Path *string
}

// ApplyToCRD sets spec.conversion. controller-tools calls it.
func (c Conversion) ApplyToCRD(crd *apiextensionsv1.CustomResourceDefinitionSpec, _ string) error {
	path := "/convert"
	if c.Path != nil {
		path = *c.Path
	}
	crd.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Namespace: c.Namespace, Name: c.Service, Path: &path},
			},
		},
	}
	return nil
}

// checkConversions reports versions of one kind whose conversion markers differ.
func (w *walk) checkConversions(kinds []kind) {
	first := map[schema.GroupKind]any{}
	for _, k := range kinds {
		values, err := w.collector.MarkersInPackage(k.in.pkg)
		if err != nil {
			continue // judgeMarkers has reported it
		}
		given := values[k.in.types[k.name].spec].Get(conversionMarker)
		of := k.version.WithKind(k.name).GroupKind()
		switch {
		case given == nil:
		case first[of] == nil:
			first[of] = given
		case !reflect.DeepEqual(first[of], given):
			w.problems.add(k.at, "%s: another version has the marker +%s with other values; keep one", k.name, conversionMarker)
		}
	}
}

// registerMarkers registers the markers that are ours.
func registerMarkers(registry *markers.Registry) error {
	definition, err := markers.MakeDefinition(conversionMarker, markers.DescribesType, Conversion{})
	if err != nil {
		return err
	}
	return registry.Register(definition)
}

// checkVersions reports served versions with other fields than the stored one and no
// conversion: a server would only change their apiVersion, and drop the fields.
func checkVersions(found *problems, d definition) {
	if d.crd.Spec.Conversion != nil {
		return
	}
	var stored *apiextensionsv1.JSONSchemaProps
	name := ""
	for _, v := range d.crd.Spec.Versions {
		if v.Storage && v.Schema != nil {
			stored, name = v.Schema.OpenAPIV3Schema, v.Name
		}
	}
	for _, v := range d.crd.Spec.Versions {
		if stored == nil || !v.Served || v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if field := differs("", stored, v.Schema.OpenAPIV3Schema); field != "" {
			at := d.at
			if declared, ok := d.kinds[v.Name]; ok {
				at = declared
			}
			found.add(at, "%s: %s differs between the versions %s and %s, and nothing converts it, so a server would drop it; add +%s:namespace=…,service=… to one of the types, or spec.conversion by -merge",
				d.crd.Name, field, name, v.Name, conversionMarker)
		}
	}
}

// differs returns the first field that only one schema has, or whose type differs. Empty:
// there is none.
func differs(path string, a, b *apiextensionsv1.JSONSchemaProps) string {
	if a.XPreserveUnknownFields != nil && *a.XPreserveUnknownFields && b.XPreserveUnknownFields != nil && *b.XPreserveUnknownFields {
		return ""
	}
	if a.Type != b.Type || a.XIntOrString != b.XIntOrString {
		return path
	}
	names := map[string]apiextensionsv1.JSONSchemaProps{}
	maps.Copy(names, a.Properties)
	maps.Copy(names, b.Properties)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inA, hasA := a.Properties[name]
		inB, hasB := b.Properties[name]
		if !hasA || !hasB {
			return path + "." + name
		}
		if field := differs(path+"."+name, &inA, &inB); field != "" {
			return field
		}
	}
	itemsA, valuesA := innerSchemas(a)
	itemsB, valuesB := innerSchemas(b)
	if itemsA != nil && itemsB != nil {
		return differs(path+"[]", itemsA, itemsB)
	}
	if valuesA != nil && valuesB != nil {
		return differs(path+"[*]", valuesA, valuesB)
	}
	return ""
}

// innerSchemas returns the schemas of a list's items and of a map's values, or nil.
func innerSchemas(s *apiextensionsv1.JSONSchemaProps) (items, values *apiextensionsv1.JSONSchemaProps) {
	if s.Items != nil {
		items = s.Items.Schema
	}
	if s.AdditionalProperties != nil {
		values = s.AdditionalProperties.Schema
	}
	return items, values
}
