// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// apply stores what a server-side apply makes of the object, or of nothing.
func (s *Server) apply(q *writing) (*object.Object, bool, error) {
	if nesting(q.body) > deepest {
		return nil, false, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	given, plain := plainFields(q.body)
	if !plain {
		given = map[string]any{}
		if err := unmarshalYAML(q.body, &given, false); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if given == nil {
		given = map[string]any{}
	}
	return s.change(q, q.subresource == "", func(old *object.Object) (*object.Object, error) {
		obj, err := q.applied(given, old)
		if err != nil {
			return nil, err
		}
		if !plain {
			err = q.reportTwice()
		}
		if err != nil {
			return nil, err
		}
		return obj, q.check(obj)
	})
}

func unmarshalYAML(body []byte, into *map[string]any, strict bool) error {
	text, err := yaml.YAMLToJSON(body)
	if strict {
		text, err = yaml.YAMLToJSONStrict(body)
	}
	if err != nil {
		return fmt.Errorf("error converting YAML to JSON: %w", err)
	}
	if _, err = strictly(text, into); err != nil {
		return fmt.Errorf("error unmarshaling JSON: while decoding JSON: %w", err)
	}
	return nil
}

// reportTwice treats fields that the body has twice.
func (q *writing) reportTwice() error {
	if q.validation == metav1.FieldValidationIgnore {
		return nil
	}
	err := unmarshalYAML(q.body, &map[string]any{}, true)
	switch {
	case err == nil:
	case q.validation == metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	default:
		q.warn(err.Error())
	}
	return nil
}

// applied is what q makes of old; nil: of nothing.
func (q *writing) applied(given map[string]any, old *object.Object) (*object.Object, error) {
	obj, err := q.merged(given, old)
	if err != nil {
		return nil, err
	}
	if q.kind.schema != nil && !unapplied(old, obj) {
		entries := entriesOf(obj) // which have no defaults, and are many
		setEntries(obj, nil)
		q.kind.schema.SetDefaults(obj.Fields)
		setEntries(obj, entries)
	}
	if old != nil {
		keepTimes(old, obj)
	}
	return obj, nil
}

// unapplied reports whether an apply has changed nothing but who owns what.
func unapplied(old, obj *object.Object) bool {
	return old != nil && jsonvalue.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") && jsonvalue.SameBut(object.MetadataOf(old), object.MetadataOf(obj), "managedFields")
}

// merged is what q makes of old, without the defaults of what is new.
func (q *writing) merged(given map[string]any, old *object.Object) (*object.Object, error) {
	of, ok := q.shapeOfApply(old, given)
	if !ok {
		return q.askMerge(given, old)
	}
	live, before := map[string]any(nil), entriesOf(old)
	if old != nil {
		live = withEntries(loose(old, q.kind).Object, nil)
	} else {
		live = q.kind.nothingShared()
	}
	known := q.kind.managers.said.recall(of)
	if known == nil {
		was := old
		if old != nil {
			was = &object.Object{Fields: withEntries(old.Fields, marked(before))}
		}
		obj, err := q.askMerge(given, was)
		if err != nil {
			return nil, err
		}
		known = ownershipOf(entriesOf(obj), len(before))
		setEntries(obj, nil)
		if known.recipe = q.recipeOf(obj.Fields, live, given); known.recipe != nil {
			q.kind.managers.said.remember(of, known)
		}
		setEntries(obj, known.after(before, entryTime(time.Now())))
		return obj, nil
	}
	fields, _ := known.recipe.make(live, given).(map[string]any)
	obj := &object.Object{Fields: fields}
	setEntries(obj, known.after(before, entryTime(time.Now())))
	return obj, nil
}

// recipeOf is the recipe of an object; nil: there is none.
func (q *writing) recipeOf(made, live, given map[string]any) *recipe {
	rules, err := q.kind.managers.rulesOf(q.kind)
	if err != nil {
		return nil
	}
	return (&shaping{schema: rules.schema}).recipeOf(made, live, given, rules.root)
}

// askMerge has the field manager say what q makes of old.
func (q *writing) askMerge(given map[string]any, old *object.Object) (*object.Object, error) {
	fields, err := q.kind.managers.get(q.kind, q.subresource)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	live := q.kind.nothing()
	if old != nil {
		live = loose(old, q.kind)
	}
	patch := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(given)}
	if given := patch.GroupVersionKind(); given.Kind != "" && given.Kind != q.kind.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %s", given))
	}
	next, err := fields.Apply(live, patch, q.manager, q.force)
	if err != nil {
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			return nil, err
		}
		return nil, errPlain(q.alike(err, given))
	}
	u, ok := next.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("apply made a %T", next))
	}
	// What is made shares parts of what is stored.
	return &object.Object{Fields: runtime.DeepCopyJSON(u.Object)}, nil
}
