// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// apply stores what a server-side apply makes of the object, or of nothing.
func (s *Server) apply(q *writing) (*object, bool, error) {
	given := map[string]any{}
	if nesting(q.body) > deepest {
		return nil, false, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	if err := unmarshalYAML(q.body, &given, false); err != nil {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if given == nil {
		given = map[string]any{}
	}
	return s.change(q, q.subresource == "", func(old *object) (*object, error) {
		obj, err := q.applied(given, old)
		if err != nil {
			return nil, err
		}
		if err := q.reportTwice(); err != nil {
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
func (q *writing) applied(given map[string]any, old *object) (obj *object, err error) {
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
		return nil, errPlain(err)
	}
	u, ok := next.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("apply made a %T", next))
	}
	// What is made shares parts of what is stored.
	obj = &object{fields: runtime.DeepCopyJSON(u.Object)}
	if old != nil {
		keepTimes(old, obj)
	}
	return obj, nil
}
