// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// listsAndMaps validates the extensions that define how lists and maps are merged.
func (w *schemaWalk) listsAndMaps(s *apiextensions.JSONSchemaProps, path *field.Path) {
	if !ptr.Deref(s.XPreserveUnknownFields, true) {
		w.add(field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	for _, t := range []struct {
		name, of string
		value    *string
		known    []string
	}{
		{"x-kubernetes-map-type", "object", s.XMapType, []string{"atomic", "granular"}},
		{"x-kubernetes-list-type", "array", s.XListType, []string{"atomic", "set", "map"}},
	} {
		if t.value == nil {
			continue
		}
		w.typed(s, path, t.of, t.name)
		if !slices.Contains(t.known, *t.value) {
			w.add(field.NotSupported(path.Child(t.name), *t.value, t.known))
		}
	}
	list := ptr.Deref(s.XListType, "")
	var items *apiextensions.JSONSchemaProps
	if s.Items != nil {
		items = s.Items.Schema
	}
	if list == "set" && s.Type == "array" && items != nil {
		w.setItems(items, path.Child("items"))
	}
	if len(s.XListMapKeys) > 0 && list != "map" {
		const must = "must be map if x-kubernetes-list-map-keys is non-empty"
		if s.XListType == nil {
			w.add(field.Required(path.Child("x-kubernetes-list-type"), must))
		} else {
			w.add(field.Invalid(path.Child("x-kubernetes-list-type"), list, must))
		}
	}
	if list == "map" {
		w.listMap(s, path)
	}
	if items != nil && (list == "map" || list == "set") {
		w.keyed(s, path.Child("items"))
	}
}

// typed requires a type of a schema with such an extension.
func (w *schemaWalk) typed(s *apiextensions.JSONSchemaProps, path *field.Path, want, mark string) {
	must := "must be " + want + " if " + mark + " is specified"
	switch s.Type {
	case want:
	case "":
		w.add(field.Required(path.Child("type"), must))
	default:
		w.add(field.Invalid(path.Child("type"), s.Type, must))
	}
}

// setItems validates the items of a set, which are compared as a whole.
func (w *schemaWalk) setItems(s *apiextensions.JSONSchemaProps, path *field.Path) {
	const must = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch {
	case s.Type == "array" && s.XListType != nil && *s.XListType != "atomic":
		w.add(field.Invalid(path.Child("x-kubernetes-list-type"), s.XListType, must))
	case s.Type == "object" && (s.XMapType == nil || *s.XMapType != "atomic"):
		w.add(field.Invalid(path.Child("x-kubernetes-map-type"), s.XListType, must))
	}
}

// listMap validates a list whose items are identified by keys.
func (w *schemaWalk) listMap(s *apiextensions.JSONSchemaProps, path *field.Path) {
	keys, items := path.Child("x-kubernetes-list-map-keys"), path.Child("items")
	if len(s.XListMapKeys) == 0 {
		w.add(field.Required(keys, "must not be empty if x-kubernetes-list-type is map"))
	}
	switch {
	case s.Items == nil:
		w.add(field.Required(items, "must have a schema if x-kubernetes-list-type is map"))
		return
	case s.Items.Schema == nil:
		w.add(field.Invalid(items, s.Items, "must only have a single schema if x-kubernetes-list-type is map"))
		return
	case s.Items.Schema.Type != "object":
		w.add(field.Invalid(items.Child("type"), s.Items.Schema.Type, "must be object if parent array's x-kubernetes-list-type is map"))
		return
	}
	for i, name := range s.XListMapKeys {
		key, ok := s.Items.Schema.Properties[name]
		switch {
		case !ok:
			w.add(field.Invalid(keys, s.XListMapKeys, "entries must all be names of item properties"))
		case key.Type == "array", key.Type == "object":
			w.add(field.Invalid(items.Child("properties").Key(name).Child("type"), s.Items.Schema.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if slices.Contains(s.XListMapKeys[:i], name) {
			w.add(field.Invalid(keys, s.XListMapKeys, "must not contain duplicate entries"))
		}
	}
}

// keyed validates that items and their keys are present.
func (w *schemaWalk) keyed(s *apiextensions.JSONSchemaProps, items *field.Path) {
	if s.Items.Schema.Nullable {
		w.add(field.Forbidden(items.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+*s.XListType))
	}
	if *s.XListType != "map" {
		return
	}
	for _, name := range s.XListMapKeys {
		key, ok := s.Items.Schema.Properties[name]
		if !ok {
			continue
		}
		path := items.Child("properties").Key(name)
		if !slices.Contains(s.Items.Schema.Required, name) && key.Default == nil {
			w.add(field.Required(path.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if key.Nullable {
			w.add(field.Forbidden(path.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
}
