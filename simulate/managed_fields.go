// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// fieldManagers are those of one kind, one for the kind itself and one for each
// subresource, made when they are first asked for.
type fieldManagers struct {
	said ownerships
	mu   struct {
		sync.Mutex
		of    map[string]*managedfields.FieldManager
		rules *fieldRules
		// nothing is an empty object of the kind. Nobody changes it.
		nothing map[string]any
	}
}

func newFieldManagers() *fieldManagers {
	m := &fieldManagers{}
	m.mu.of = map[string]*managedfields.FieldManager{}
	return m
}

func (m *fieldManagers) get(k *Kind, subresource string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	known := m.mu.of[subresource]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := k.newFieldManager(subresource)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.of[subresource] = made
	return made, nil
}

// rulesOf are the rules of k's objects; nil: there are none.
func (m *fieldManagers) rulesOf(k *Kind) (*fieldRules, error) {
	m.mu.Lock()
	known := m.mu.rules
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	typed, err := k.converter().ObjectToTyped(k.nothing())
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.rules = &fieldRules{schema: typed.Schema(), root: typed.TypeRef()}
	return m.mu.rules, nil
}

// converter is how field managers read k's objects.
func (k *Kind) converter() managedfields.TypeConverter {
	if k.schema != nil {
		if types := k.schema.TypeConverter(); types != nil {
			return types
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

func (k *Kind) newFieldManager(subresource string) (*managedfields.FieldManager, error) {
	build := managedfields.NewDefaultCRDFieldManager
	if k.builtin {
		build = managedfields.NewDefaultFieldManager
	}
	return build(k.converter(), versions{k}, versions{k}, versions{k}, k.GroupVersionKind, k.GroupVersion(), subresource, k.notOwned(subresource))
}

// notOwned are the fields that a write cannot change, so nobody comes to own
// them by it.
func (k *Kind) notOwned(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	version := fieldpath.APIVersion(k.GroupVersion().String())
	except := func(paths ...fieldpath.Path) {
		filters[version] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...))
	}
	switch {
	case subresource == "" && k.status:
		except(fieldpath.MakePathOrDie("status"))
	case subresource == "status" && !k.builtin:
		filters[version] = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	case subresource == "status":
		paths := []fieldpath.Path{fieldpath.MakePathOrDie("spec")}
		for _, name := range k.keptByStatus() {
			paths = append(paths, fieldpath.MakePathOrDie("metadata", name))
		}
		except(paths...)
	}
	return filters
}

// versions converts and makes objects of one kind as a field manager
// asks for them.
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
	kind, was := v.kind.sibling(to.GroupVersion()), v.kind.sibling(from.GroupVersion())
	if kind == nil || was == nil {
		return nil, runtime.NewNotRegisteredErrForKind("simulated", to)
	}
	obj, err := convert(&object.Object{Fields: u.Object}, was, kind)
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

// Default leaves an applied object as it is: what it is made of is remembered,
// and its defaults depend on its values.
func (versions) Default(runtime.Object) {}

func (v versions) New(schema.GroupVersionKind) (runtime.Object, error) { return v.kind.nothing(), nil }

// loose is an object whose metadata can be changed without harm to obj.
func loose(obj *object.Object, k *Kind) *unstructured.Unstructured {
	fields := maps.Clone(obj.Fields)
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	fields["metadata"] = metadata
	fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	return &unstructured.Unstructured{Object: fields}
}

// nothing is an object before anybody has written anything of it.
func (k *Kind) nothing() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(k.nothingShared())}
}

// nothingShared is one that nobody may change.
func (k *Kind) nothingShared() map[string]any {
	k.managers.mu.Lock()
	known := k.managers.mu.nothing
	k.managers.mu.Unlock()
	if known == nil {
		known = k.makeNothing().Object
		k.managers.mu.Lock()
		k.managers.mu.nothing = known
		k.managers.mu.Unlock()
	}
	return known
}

func (k *Kind) makeNothing() *unstructured.Unstructured {
	if k.builtin {
		if typed, err := gotypes.Scheme().New(k.GroupVersionKind); err == nil {
			if obj, err := objectOfTyped(k, typed); err == nil {
				return obj.Meta()
			}
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

// own notes in obj who has written what of it since old; nil: all of it.
func (q *writing) own(old, obj *object.Object) error {
	of, ok := q.shapeOf(old, obj)
	if !ok {
		if err := q.askManager(old, obj); err != nil {
			return err
		}
	} else if err := q.ownAs(of, old, obj); err != nil {
		return err
	}
	if old != nil {
		keepTimes(old, obj)
	}
	return nil
}

// ownAs is own, for a write of a shape that can be remembered.
func (q *writing) ownAs(of shape, old, obj *object.Object) error {
	now, before := entryTime(time.Now()), entriesOf(old)
	known := q.kind.managers.said.recall(of)
	if known == nil {
		asked := &object.Object{Fields: withEntries(obj.Fields, nil)}
		was := old
		if old != nil {
			was = &object.Object{Fields: withEntries(old.Fields, marked(before))}
		}
		switch ok, err := q.manage(was, asked); {
		case err != nil:
			return err
		case !ok:
			return q.askManager(old, obj)
		}
		known = ownershipOf(entriesOf(asked), len(before))
		q.kind.managers.said.remember(of, known)
	}
	setEntries(obj, known.after(before, now))
	return nil
}

// withEntries are the fields of an object with other managed fields. All else
// is shared.
func withEntries(fields map[string]any, entries []any) map[string]any {
	out := maps.Clone(fields)
	metadata, _ := out["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	if delete(metadata, "managedFields"); len(entries) > 0 {
		metadata["managedFields"] = entries
	}
	out["metadata"] = metadata
	return out
}

// setEntries gives an object its managed fields.
func setEntries(obj *object.Object, entries []any) {
	if len(entries) == 0 {
		delete(object.MetadataOf(obj), "managedFields")
		return
	}
	object.MetadataOf(obj)["managedFields"] = entries
}

// askManager has the field manager say who owns what.
func (q *writing) askManager(old, obj *object.Object) error {
	if ok, err := q.manage(old, obj); err != nil || ok {
		return err
	}
	// As a real server: the write goes on with the entries there were.
	live := q.kind.nothing()
	if old != nil {
		live = loose(old, q.kind)
	}
	obj.Meta().SetManagedFields(live.GetManagedFields())
	return nil
}

// manage is askManager; false: the field manager cannot say.
func (q *writing) manage(old, obj *object.Object) (bool, error) {
	fields, err := q.kind.managers.get(q.kind, q.subresource)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	live := q.kind.nothing()
	if old != nil {
		live = loose(old, q.kind)
	}
	next, err := fields.Update(live, obj.Meta(), q.manager)
	if err != nil {
		return false, nil
	}
	if u, ok := next.(*unstructured.Unstructured); ok {
		obj.Fields = u.Object
	}
	return true, nil
}

// keepTimes takes back a new time of an entry when nothing else has changed.
func keepTimes(old, obj *object.Object) {
	a, _ := old.Fields["metadata"].(map[string]any)
	b, _ := obj.Fields["metadata"].(map[string]any)
	was, _ := a["managedFields"].([]any)
	is, _ := b["managedFields"].([]any)
	if len(was) != len(is) || len(is) == 0 || !jsonvalue.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") || !jsonvalue.SameBut(a, b, "managedFields") {
		return
	}
	for i := range is {
		x, _ := was[i].(map[string]any)
		y, _ := is[i].(map[string]any)
		if !jsonvalue.SameBut(x, y, "time") {
			return
		}
	}
	b["managedFields"] = was
}

func contains(list []string, one string) bool {
	for _, each := range list {
		if each == one {
			return true
		}
	}
	return false
}
