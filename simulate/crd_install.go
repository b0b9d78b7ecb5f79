// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// definitionOf is a CRD that is stored, in its Go type. Nobody changes its spec, which
// servers share.
func definitionOf(obj *object.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	if definedBy(obj) == nil {
		return object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	}
	crd := new(apiextensionsv1.CustomResourceDefinition)
	rest := maps.Clone(obj.Fields)
	delete(rest, "spec")
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, crd)
	crd.Spec = definedBy(obj).spec
	return crd, err
}

// define gives obj, which is about to be stored, what it defines if it is a CRD.
func (k *Kind) define(obj *object.Object) error {
	if k.resource() != definitions {
		return nil
	}
	crd, err := object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	if err != nil {
		return err
	}
	obj.Defines, err = compileDefinition(&crd.Spec)
	return err
}

// completeDefinition gives a CRD that is put what a request would have given it.
func completeDefinition(obj *object.Object) error {
	crd, err := object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	if err != nil {
		return err
	}
	defaults.Set(crd)
	written, err := objectOfTyped(&Kind{GroupVersionKind: models.DefinitionKind}, crd)
	if err != nil {
		return err
	}
	obj.Fields = written.Fields
	obj.Defines, err = compileDefinition(&crd.Spec)
	return err
}

// storedVersions are those that objects may be stored in: those of old, and the
// storage version of obj.
func storedVersions(obj, old *object.Object) []any {
	var stored []any
	if old != nil {
		status, _ := old.Fields["status"].(map[string]any)
		held, _ := status["storedVersions"].([]any)
		stored = append(stored, held...)
	}
	spec, _ := obj.Fields["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, each := range versions {
		if v, _ := each.(map[string]any); v["storage"] == true {
			if !slices.Contains(stored, v["name"]) {
				stored = append(stored, v["name"])
			}
			break
		}
	}
	return stored
}

// serveDefinitionLocked serves what a CRD defines, as far as its names are
// accepted, and ends the watches of kinds that are not as they were.
func (s *Server) serveDefinitionLocked(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	r := resourceOf(crd)
	accepted := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	old := s.mu.families[r]
	if !accepted || r.Resource == "" || definedBy(obj) == nil || old != nil && old.storage.builtin {
		return
	}
	next := &family{definition: definedBy(obj), names: crd.Status.AcceptedNames, terminating: apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)}
	if same := old != nil && old.definition != nil && old.definition.key == next.definition.key && equality.Semantic.DeepEqual(old.names, next.names); same {
		old.terminating = next.terminating
		return
	}
	next.convert = conversionOf(definedBy(obj).spec.Conversion, s.webhookRoad)
	next.asked = next.convert != nil
	next.fill(r)
	s.replaceLocked(next)
}

// replaceLocked serves kinds in place of those of the same resource, whose
// watches end: their objects may look different from now on.
func (s *Server) replaceLocked(f *family) {
	old := s.mu.families[f.resource]
	for _, k := range f.versions {
		k.schemaLife = schemaLife{oldest: max(k.oldest, s.mu.log.Revision)}
		if old != nil {
			k.schemaLife = old.storage.schemaLife
			k.changes++
			k.publish = time.Now().Add(s.mu.faults.publishAfter)
		}
	}
	s.installLocked(f)
	if old != nil {
		s.endLocked(f.resource)
	}
}

// with is the family with another kind in the place of the one that the log
// holds.
func (f *family) with(stored *Kind) *family {
	next := *f
	next.versions, next.storage = slices.Clone(f.versions), stored
	for i, k := range next.versions {
		if k == f.storage {
			next.versions[i] = stored
		} else {
			other := *k // which belongs to the family that was
			next.versions[i] = &other
		}
	}
	return &next
}

// fill makes the kinds of a family of what its CRD defines.
func (f *family) fill(r schema.GroupResource) {
	f.resource = r
	for i := range f.definition.versions {
		v := &f.definition.versions[i]
		k := f.definition.kindOf(v, f.names)
		f.versions = append(f.versions, k)
		if v.Storage {
			f.storage = k
		}
	}
}

// kindOf is the kind that one version defines, under the names it has got.
func (d *definition) kindOf(v *apiextensionsv1.CustomResourceDefinitionVersion, names apiextensionsv1.CustomResourceDefinitionNames) *Kind {
	made := d.schemas[v.Name]
	k := Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: d.spec.Group, Version: v.Name, Kind: names.Kind},
		Resource:         names.Plural, Namespaced: d.spec.Scope == apiextensionsv1.NamespaceScoped,
		singular: names.Singular, shortNames: names.ShortNames, categories: names.Categories, listKind: names.ListKind,
		verbs:    []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		managers: made.managers, scaleManagers: made.scaleManagers,
		schema: made, unserved: !v.Served, warning: d.deprecation(v), columns: v.AdditionalPrinterColumns,
	}
	for _, f := range v.SelectableFields {
		k.selectable = append(k.selectable, f.JSONPath)
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		k.status = true
		k.subresources = append(k.subresources, k.subresource("status"))
	}
	if made.scale != nil {
		k.subresources = append(k.subresources, k.subresource("scale"))
		k.scale = &scalePaths{spec: dotted(made.scale.SpecReplicasPath), status: dotted(made.scale.StatusReplicasPath)}
		if path := made.scale.LabelSelectorPath; path != nil && *path != "" {
			k.scale.selector = dotted(*path)
		}
	}
	return k.completed()
}

// deprecation is what clients of a version that is going away are told.
func (d *definition) deprecation(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.spec.Group, v.Name, d.spec.Names.Kind)
	better := slices.IndexFunc(d.versions, func(other apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0
	})
	if better >= 0 {
		text += fmt.Sprintf("; use %s/%s %s", d.spec.Group, d.versions[better].Name, d.spec.Names.Kind)
	}
	return text
}

// undefineLocked serves a kind no longer: its CRD is gone.
func (s *Server) undefineLocked(r schema.GroupResource) {
	if f := s.mu.families[r]; f == nil || f.definition == nil {
		return
	}
	s.removeFamilyLocked(r)
	s.endLocked(r)
}

// redefineLocked serves what the CRDs that are stored define, and nothing else
// that a CRD has defined: the store is another than it was.
func (s *Server) redefineLocked() {
	held, _ := s.mu.log.List(definitions, s.mu.log.Revision)
	kept := map[schema.GroupResource]bool{}
	for _, obj := range held {
		crd, err := definitionOf(obj)
		if err != nil {
			continue
		}
		if definedBy(obj) == nil {
			obj.Defines, _ = compileDefinition(&crd.Spec) // what cannot be compiled is not served
		}
		kept[resourceOf(crd)] = true
		s.serveDefinitionLocked(obj, crd)
	}
	for r := range s.mu.families {
		if !kept[r] {
			s.undefineLocked(r)
		}
	}
}

// resourceOf is the resource that a CRD has got.
func resourceOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural}
}

// definedBy is what obj defines, if it is a CRD that could be compiled.
func definedBy(obj *object.Object) *definition {
	d, _ := obj.Defines.(*definition)
	return d
}
