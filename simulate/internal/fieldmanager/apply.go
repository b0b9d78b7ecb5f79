// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Applied returns the result of q's apply to old; old is nil for a new object.
func (q Writer) Applied(given map[string]any, old *object.Object) (*object.Object, error) {
	obj, err := q.merged(given, old)
	if err != nil {
		return nil, err
	}
	if q.Kind.Schema != nil && !unapplied(old, obj) {
		entries := ownership.EntriesOf(obj) // they have no defaults, and are many
		ownership.SetEntries(obj, nil)
		q.Kind.Schema.SetDefaults(obj.Fields)
		ownership.SetEntries(obj, entries)
	}
	if old != nil {
		keepTimes(old, obj)
	}
	return obj, nil
}

// unapplied reports whether an apply changed nothing but the owners of fields.
func unapplied(old, obj *object.Object) bool {
	return old != nil && jsontree.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") && jsontree.SameBut(object.MetadataOf(old), object.MetadataOf(obj), "managedFields")
}

// merged returns the result of q's apply to old, without the defaults of new fields.
func (q Writer) merged(given map[string]any, old *object.Object) (*object.Object, error) {
	of, ok := q.shapeOfApply(old, given)
	if !ok {
		return q.askMerge(given, old)
	}
	live, before := map[string]any(nil), ownership.EntriesOf(old)
	if old != nil {
		live = ownership.WithEntries(kinds.Loose(old, q.Kind).Object, nil)
	} else {
		live = q.Kind.NothingShared()
	}
	known := q.Kind.Managers.Said.Recall(of)
	if known == nil {
		was := old
		if old != nil {
			was = &object.Object{Fields: ownership.WithEntries(old.Fields, ownership.Marked(before))}
		}
		obj, err := q.askMerge(given, was)
		if err != nil {
			return nil, err
		}
		known = ownership.OwnershipOf(ownership.EntriesOf(obj), len(before))
		ownership.SetEntries(obj, nil)
		if known.Recipe = q.recipeOf(obj.Fields, live, given); known.Recipe != nil {
			q.Kind.Managers.Said.Remember(of, known)
		}
		ownership.SetEntries(obj, known.After(before, ownership.EntryTime(time.Now())))
		return obj, nil
	}
	fields, _ := known.Recipe.Make(live, given).(map[string]any)
	obj := &object.Object{Fields: fields}
	ownership.SetEntries(obj, known.After(before, ownership.EntryTime(time.Now())))
	return obj, nil
}

// recipeOf returns the recipe of an object; nil: there is none.
func (q Writer) recipeOf(made, live, given map[string]any) *ownership.Recipe {
	rules, err := q.Kind.Rules()
	if err != nil {
		return nil
	}
	return (&shaping{schema: rules.Schema}).recipeOf(made, live, given, rules.Root)
}

// askMerge runs q's apply through the field manager.
func (q Writer) askMerge(given map[string]any, old *object.Object) (*object.Object, error) {
	fields, err := q.Kind.FieldManager(q.Subresource)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	live := q.Kind.Nothing()
	if old != nil {
		live = kinds.Loose(old, q.Kind)
	}
	patch := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(given)}
	if given := patch.GroupVersionKind(); given.Kind != "" && given.Kind != q.Kind.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %s", given))
	}
	next, err := fields.Apply(live, patch, q.Manager, q.Force)
	if err != nil {
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			return nil, err
		}
		return nil, refusal.Plain(q.alike(err, given))
	}
	u, ok := next.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("apply made a %T", next))
	}
	// The result shares parts of the stored object.
	return &object.Object{Fields: runtime.DeepCopyJSON(u.Object)}, nil
}
