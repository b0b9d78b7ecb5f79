// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// DefinitionOf decodes a stored CRD. Servers share its spec, which must not be modified.
func DefinitionOf(obj *object.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	if DefinedBy(obj) == nil {
		return object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	}
	crd := new(apiextensionsv1.CustomResourceDefinition)
	rest := maps.Clone(obj.Fields)
	delete(rest, "spec")
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, crd)
	crd.Spec = DefinedBy(obj).Spec
	return crd, err
}

// Define compiles obj, which is about to be stored, if it is a CRD.
func (k *Kind) Define(obj *object.Object) error {
	if k.GroupResource() != Definitions {
		return nil
	}
	crd, err := object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	if err != nil {
		return err
	}
	obj.Defines, err = CompileDefinition(&crd.Spec)
	return err
}

// CompleteDefinition sets what a request would have set in a CRD that a test puts into the
// store.
func CompleteDefinition(obj *object.Object) error {
	crd, err := object.TypedOf[apiextensionsv1.CustomResourceDefinition](obj)
	if err != nil {
		return err
	}
	defaults.Set(crd)
	written, err := ObjectOfTyped(&Kind{GroupVersionKind: models.DefinitionKind}, crd)
	if err != nil {
		return err
	}
	obj.Fields = written.Fields
	obj.Defines, err = CompileDefinition(&crd.Spec)
	return err
}

// StoredVersions returns the versions in which objects may be stored: the previous ones and
// the storage version of obj.
func StoredVersions(obj, old *object.Object) []any {
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

// With returns the family with another kind as its storage version.
func (f *Family) With(stored *Kind) *Family {
	next := *f
	next.Versions, next.Storage = slices.Clone(f.Versions), stored
	for i, k := range next.Versions {
		if k == f.Storage {
			next.Versions[i] = stored
		} else {
			other := *k // k belongs to the previous family
			next.Versions[i] = &other
		}
	}
	return &next
}

// Fill creates the kinds of a family from the definition of its CRD.
func (f *Family) Fill(r schema.GroupResource) {
	f.Resource = r
	for i := range f.Definition.versions {
		v := &f.Definition.versions[i]
		k := f.Definition.kindOf(v, f.Names)
		f.Versions = append(f.Versions, k)
		if v.Storage {
			f.Storage = k
		}
	}
}

// kindOf returns the kind that one version defines, under its accepted names.
func (d *definition) kindOf(v *apiextensionsv1.CustomResourceDefinitionVersion, names apiextensionsv1.CustomResourceDefinitionNames) *Kind {
	made := d.schemas[v.Name]
	k := Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: names.Kind},
		Resource:         names.Plural, Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories, ListKind: names.ListKind,
		Verbs:    []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		Managers: made.managers, ScaleManagers: made.scaleManagers,
		Schema: made, Unserved: !v.Served, Warning: d.deprecation(v), Columns: v.AdditionalPrinterColumns,
	}
	for _, f := range v.SelectableFields {
		k.Selectable = append(k.Selectable, f.JSONPath)
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		k.Status = true
		k.Subresources = append(k.Subresources, k.subresource("status"))
	}
	if made.scale != nil {
		k.Subresources = append(k.Subresources, k.subresource("scale"))
		k.Scale = &scalePaths{Spec: dotted(made.scale.SpecReplicasPath), Status: dotted(made.scale.StatusReplicasPath)}
		if path := made.scale.LabelSelectorPath; path != nil && *path != "" {
			k.Scale.Selector = dotted(*path)
		}
	}
	return k.Completed()
}

// deprecation returns the warning for clients of a deprecated version.
func (d *definition) deprecation(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, d.Spec.Names.Kind)
	better := slices.IndexFunc(d.versions, func(other apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0
	})
	if better >= 0 {
		text += fmt.Sprintf("; use %s/%s %s", d.Spec.Group, d.versions[better].Name, d.Spec.Names.Kind)
	}
	return text
}

// ResourceOf returns the resource of a CRD's accepted names.
func ResourceOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Status.AcceptedNames.Plural}
}

// DefinedBy returns the definition of obj if it is a CRD that compiled.
func DefinedBy(obj *object.Object) *definition {
	d, _ := obj.Defines.(*definition)
	return d
}
