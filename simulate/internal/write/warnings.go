// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// warningsAbout returns the warnings about an object that is written. old is nil for a create; the
// warnings about finalizers and CRDs do not repeat what old already had.
func warningsAbout(kind *kinds.Kind, old, obj *object.Object) []string {
	switch {
	case kind.GroupResource() == kinds.Definitions:
		return ofDefinition(old, obj)
	case !kind.Builtin:
		return ofFinalizers(old, obj)
	default:
		return ofPods(kind, obj)
	}
}

// ofFinalizers warns of names of finalizers that other writers might use too.
func ofFinalizers(old, obj *object.Object) (texts []string) {
	finalizers := obj.Meta().GetFinalizers()
	slices.Sort(finalizers)
	for _, name := range slices.Compact(finalizers) {
		if old != nil && slices.Contains(old.Meta().GetFinalizers(), name) {
			continue
		}
		for _, problem := range utilvalidation.IsQualifiedName(name) {
			texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: %s", name, problem))
		}
		standard := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == "kubernetes"
		switch {
		case strings.Contains(name, "/") || standard:
		case strings.Contains(name, "."):
			texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
		default:
			texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
	return texts
}

// ofDefinition warns of unknown formats, and of sets whose items cannot be compared.
func ofDefinition(old, obj *object.Object) (texts []string) {
	formats, sets := ofSchemas(obj)
	var known, knownSets []string
	if old != nil {
		known, knownSets = ofSchemas(old)
	}
	return slices.Concat(
		slices.DeleteFunc(formats, func(format string) bool { return slices.Contains(known, format) }),
		slices.DeleteFunc(sets, func(set string) bool { return slices.Contains(knownSets, set) }))
}

func ofSchemas(obj *object.Object) (formats, sets []string) {
	crd, err := kinds.InternalDefinition(obj.Fields)
	if err != nil {
		return nil, nil
	}
	version, found := environment.DefaultCompatibilityVersion(), map[string]bool{}
	for _, schema := range crdrules.SchemasOf(crd) {
		crdrules.EachSchema(schema, func(s *apiextensions.JSONSchemaProps) {
			if s.Format != "" {
				of := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
				for _, format := range apiservervalidation.GetUnrecognizedFormats(of, version) {
					formats = append(formats, fmt.Sprintf("unrecognized format %q", format))
				}
			}
			if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil && slices.Contains([]string{"object", "array"}, s.Items.Schema.Type) {
				found[fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", s.Items.Schema.Type)] = true
			}
		})
	}
	return formats, slices.Sorted(maps.Keys(found))
}
