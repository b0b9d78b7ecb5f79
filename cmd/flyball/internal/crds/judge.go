// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// checkRules reports what a server refuses in a definition, and schemas that contradict
// themselves, so that they refuse every value.
func checkRules(ctx context.Context, found *problems, d definition) {
	for _, v := range d.crd.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			c := consistency{found, d, v.Name}
			c.schema("", v.Schema.OpenAPIV3Schema)
		}
	}
	checkScale(found, d)
	checkVersions(found, d)
	given := d.crd.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(given)
	var in apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(given, &in, nil); err != nil {
		found.add(d.at, "%s: %v", d.crd.Name, err)
		return
	}
	in.Status.StoredVersions = nil
	for _, v := range in.Spec.Versions {
		if v.Storage {
			in.Status.StoredVersions = append(in.Status.StoredVersions, v.Name)
		}
	}
	if stored := in.Status.StoredVersions; len(stored) > 1 {
		found.add(d.at, "%s: the versions %s are all marked +kubebuilder:storageversion; keep one marker", d.crd.Name, strings.Join(stored, ", "))
		return
	}
	for _, err := range validation.ValidateCustomResourceDefinition(ctx, &in) {
		found.add(d.at, "%s: a server refuses it: %v", d.crd.Name, err)
	}
}

// consistency looks for schemas that contradict themselves.
type consistency struct {
	found   *problems
	of      definition
	version string
}

func (c consistency) add(path, format string, args ...any) {
	c.found.add(c.of.at, "%s, version %s: "+path+": "+format, append([]any{c.of.crd.Name, c.version}, args...)...)
}

func (c consistency) schema(path string, s *apiextensionsv1.JSONSchemaProps) {
	c.bounds(path, s)
	for _, value := range s.Enum {
		var v any
		if json.Unmarshal(value.Raw, &v) == nil && !isOfType(v, s.Type) && !s.XIntOrString {
			c.add(path, "the enum has %s, and the type is %s", value.Raw, s.Type)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		c.schema(path+"."+name, &p)
	}
	if s.Items != nil && s.Items.Schema != nil {
		c.schema(path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.schema(path+"[*]", s.AdditionalProperties.Schema)
	}
}

// together returns a schema and those that all have to hold beside it.
func together(s *apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	out := []*apiextensionsv1.JSONSchemaProps{s}
	for i := range s.AllOf {
		out = append(out, together(&s.AllOf[i])...)
	}
	return out
}

// bounds reports ranges without a value.
func (c consistency) bounds(path string, s *apiextensionsv1.JSONSchemaProps) {
	type side = func(*apiextensionsv1.JSONSchemaProps) (float64, bool)
	length := func(of func(*apiextensionsv1.JSONSchemaProps) *int64) side {
		return func(s *apiextensionsv1.JSONSchemaProps) (float64, bool) {
			if n := of(s); n != nil {
				return float64(*n), true
			}
			return 0, false
		}
	}
	number := func(of func(*apiextensionsv1.JSONSchemaProps) *float64) side {
		return func(s *apiextensionsv1.JSONSchemaProps) (float64, bool) {
			if n := of(s); n != nil {
				return *n, true
			}
			return 0, false
		}
	}
	type props = apiextensionsv1.JSONSchemaProps
	for _, b := range [...]struct {
		low, high   string
		least, most side
	}{
		{"minimum", "maximum", number(func(s *props) *float64 { return s.Minimum }), number(func(s *props) *float64 { return s.Maximum })},
		{"minLength", "maxLength", length(func(s *props) *int64 { return s.MinLength }), length(func(s *props) *int64 { return s.MaxLength })},
		{"minItems", "maxItems", length(func(s *props) *int64 { return s.MinItems }), length(func(s *props) *int64 { return s.MaxItems })},
		{"minProperties", "maxProperties", length(func(s *props) *int64 { return s.MinProperties }), length(func(s *props) *int64 { return s.MaxProperties })},
	} {
		for _, low := range together(s) {
			for _, high := range together(s) {
				least, hasLeast := b.least(low)
				most, hasMost := b.most(high)
				excluded := b.low == "minimum" && least == most && (low.ExclusiveMinimum || high.ExclusiveMaximum)
				if hasLeast && hasMost && (least > most || excluded) {
					c.add(path, "no value is possible: %s %v and %s %v contradict each other", b.low, least, b.high, most)
				}
			}
		}
	}
}

func isOfType(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return name == "string" || name == ""
	case bool:
		return name == "boolean" || name == ""
	case float64:
		return name == "number" || name == "" || name == "integer" && v == float64(int64(v))
	}
	return true
}
