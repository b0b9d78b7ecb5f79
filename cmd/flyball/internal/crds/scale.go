// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/flyball-dev/flyball/internal/editdistance"
)

const scaleMarker = "kubebuilder:subresource:scale"

// checkScale reports paths of a scale that lead to no field of the right type. A server
// takes them, and each read of the scale fails.
func checkScale(found *problems, d definition) {
	for _, v := range d.crd.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Scale == nil || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		scale := v.Subresources.Scale
		for _, p := range []struct{ name, path, of, example string }{
			{"specpath", scale.SpecReplicasPath, "integer", "Replicas int32 `json:\"replicas\"`"},
			{"statuspath", scale.StatusReplicasPath, "integer", "Replicas int32 `json:\"replicas\"`"},
			{"selectorpath", orEmpty(scale.LabelSelectorPath), "string", "Selector string `json:\"selector\"`"},
		} {
			if p.path == "" {
				continue // a server refuses those that it needs
			}
			root := v.Schema.OpenAPIV3Schema
			is := "there is no such field"
			if field := fieldAt(root, p.path); field != nil && field.Type == p.of {
				continue
			} else if field != nil {
				is = "its type is " + orWord(field.Type, "not given") + ", not " + p.of
			}
			at := d.at
			if marked, ok := d.scales[v.Name]; ok {
				at = marked
			}
			found.add(at, "%s, version %s: the scale's %s is %s, and %s; %s", d.crd.Name, v.Name, p.name, p.path, is, fix(root, p.path, p.of, p.example))
		}
	}
}

// fix says what to write for a path.
func fix(root *apiextensionsv1.JSONSchemaProps, path, of, example string) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
	var inside *apiextensionsv1.JSONSchemaProps
	if p, ok := root.Properties[top]; ok {
		inside = &p
	}
	best, least := "", 1<<30
	for _, other := range fieldsOf(inside, "."+top, of) {
		if n := editdistance.Of(other, path); n < least {
			best, least = other, n
		}
	}
	if best != "" {
		return "write the path of a field of type " + of + ", such as " + best
	}
	return fmt.Sprintf("add a field of type %s to .%s, such as %s", of, top, example)
}

// fieldsOf returns the paths of all fields of a type, through objects alone.
func fieldsOf(s *apiextensionsv1.JSONSchemaProps, path, of string) []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.Type == of {
		out = append(out, path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inner := s.Properties[name]
		out = append(out, fieldsOf(&inner, path+"."+name, of)...)
	}
	return out
}

// fieldAt returns the schema of the field at a path such as .spec.replicas; nil: none.
func fieldAt(s *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		inner, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &inner
	}
	return s
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// markerAt returns the position of a marker in the comments of a type.
func markerAt(d declared, marker string) (token.Pos, bool) {
	first := token.NoPos // the end of the declaration before
	for _, other := range d.file.Decls {
		if other.End() <= d.decl.Pos() {
			first = other.End()
		}
	}
	for _, group := range d.file.Comments {
		for _, c := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if c.Pos() > first && c.End() < d.spec.Name.Pos() && strings.HasPrefix(text, "+"+marker) {
				return c.Pos(), true
			}
		}
	}
	return token.NoPos, false
}
