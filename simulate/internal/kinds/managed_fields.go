// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// converter returns how field managers read k's objects.
func (k *Kind) converter() managedfields.TypeConverter {
	if k.Schema != nil {
		if types := k.Schema.TypeConverter(); types != nil {
			return types
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

func (k *Kind) newFieldManager(subresource string) (*managedfields.FieldManager, error) {
	build := managedfields.NewDefaultCRDFieldManager
	if k.Builtin {
		build = managedfields.NewDefaultFieldManager
	}
	return build(k.converter(), versions{k}, versions{k}, versions{k}, k.GroupVersionKind, k.GroupVersion(), subresource, k.notOwned(subresource))
}

// notOwned returns the fields that a write cannot change, and so does not own.
func (k *Kind) notOwned(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	version := fieldpath.APIVersion(k.GroupVersion().String())
	except := func(paths ...fieldpath.Path) {
		filters[version] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...))
	}
	switch {
	case subresource == "" && k.Status:
		except(fieldpath.MakePathOrDie("status"))
	case subresource == "status" && !k.Builtin:
		filters[version] = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	case subresource == "status":
		paths := []fieldpath.Path{fieldpath.MakePathOrDie("spec")}
		for _, name := range k.KeptByStatus() {
			paths = append(paths, fieldpath.MakePathOrDie("metadata", name))
		}
		except(paths...)
	}
	return filters
}

// versions converts and creates objects of one kind for a field manager.
type versions struct{ kind *Kind }

func (v versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("convert a %T", in)
	}
	from := u.GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok || to == from {
		return in, nil
	}
	kind, was := v.kind.Sibling(to.GroupVersion()), v.kind.Sibling(from.GroupVersion())
	if kind == nil || was == nil {
		return nil, runtime.NewNotRegisteredErrForKind("simulated", to)
	}
	obj, err := Convert(&object.Object{Fields: u.Object}, was, kind)
	if err != nil {
		return nil, err
	}
	obj.Fields["apiVersion"] = to.GroupVersion().String()
	return obj.Meta(), nil
}

func (versions) Convert(any, any, any) error { return errors.New("not asked for") }

func (versions) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default leaves an applied object unchanged: the recipe of the result is remembered, and
// defaults depend on values.
func (versions) Default(runtime.Object) {}

func (v versions) New(schema.GroupVersionKind) (runtime.Object, error) { return v.kind.Nothing(), nil }

// Loose returns an object whose metadata can be changed without changing obj.
func Loose(obj *object.Object, k *Kind) *unstructured.Unstructured {
	fields := maps.Clone(obj.Fields)
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	fields["metadata"] = metadata
	fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	return &unstructured.Unstructured{Object: fields}
}

// Nothing returns an object without any fields that a writer sets.
func (k *Kind) Nothing() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(k.NothingShared())}
}

// NothingShared returns the fields of such an object. They must not be modified.
func (k *Kind) NothingShared() map[string]any {
	return k.Managers.NothingOf(func() map[string]any { return k.makeNothing().Object })
}

// FieldManager returns the field manager for writes of k's objects or of a subresource.
func (k *Kind) FieldManager(subresource string) (*managedfields.FieldManager, error) {
	return k.Managers.Get(subresource, k.newFieldManager)
}

// Rules returns the ownership rules of k's objects; nil: there are none.
func (k *Kind) Rules() (*ownership.FieldRules, error) {
	return k.Managers.RulesOf(func() (*typed.TypedValue, error) { return k.converter().ObjectToTyped(k.Nothing()) })
}

func (k *Kind) makeNothing() *unstructured.Unstructured {
	if k.Builtin {
		if typed, err := models.Scheme().New(k.GroupVersionKind); err == nil {
			if obj, err := ObjectOfTyped(k, typed); err == nil {
				return obj.Meta()
			}
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}
