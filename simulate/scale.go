// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaleOf is the Scale of an object.
func (k *Kind) scaleOf(obj *object) *autoscalingv1.Scale {
	m, p := obj.meta(), k.scale
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(), CreationTimestamp: m.GetCreationTimestamp(),
	}}
	scale.Spec.Replicas = numberAt(obj.fields, p.spec)
	scale.Status.Replicas = numberAt(obj.fields, p.status)
	switch {
	case len(p.selector) == 0:
	case p.plainSelector:
		labels, _, _ := unstructured.NestedStringMap(obj.fields, p.selector...)
		scale.Status.Selector = metav1.FormatLabelSelector(metav1.SetAsLabelSelector(labels))
	case p.builtin:
		fields, _, _ := unstructured.NestedMap(obj.fields, p.selector...)
		var selector metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) == nil {
			scale.Status.Selector = metav1.FormatLabelSelector(&selector)
		}
	default:
		scale.Status.Selector, _, _ = unstructured.NestedString(obj.fields, p.selector...)
	}
	return scale
}

func numberAt(fields map[string]any, path []string) int32 {
	n, _, _ := unstructured.NestedInt64(fields, path...)
	return int32(n)
}

// getScale answers a GET of an object's scale.
func (s *Server) getScale(w http.ResponseWriter, c *call) error {
	obj, err := s.find(c, 0)
	if err != nil {
		return err
	}
	return s.respondTyped(w, &writing{call: c}, http.StatusOK, scaleKind, c.kind.scaleOf(obj))
}

// putScale answers a PUT of an object's scale.
func (s *Server) putScale(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	given, err := decodeOwn[autoscalingv1.Scale](q, scaleKind)
	if err != nil {
		return err
	}
	if given.Name != "" && given.Name != c.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", given.Name, c.name))
	}
	return s.rescale(w, q, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) { return given, nil })
}

// patchScale answers a PATCH of an object's scale.
func (s *Server) patchScale(w http.ResponseWriter, c *call) error {
	typed := Kind{GroupVersionKind: scaleKind, Resource: c.kind.Resource, Namespaced: c.kind.Namespaced}.completed()
	typed.schema = builtinSchema{typed}
	of := *c
	of.kind = typed
	q, err := of.writing()
	if err != nil {
		return err
	}
	if q.applies() {
		return apierrors.NewBadRequest("the simulated server does not apply to scale; patch or update it")
	}
	patch, err := q.readPatch()
	if err != nil {
		return err
	}
	whole := &writing{call: c, media: q.media, body: q.body, dryRun: q.dryRun, manager: q.manager, validation: q.validation}
	return s.rescale(w, whole, func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		text, err := json.Marshal(old)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if text, err = patch(typed, text); err != nil {
			return nil, err
		}
		scale := &autoscalingv1.Scale{}
		if err := json.Unmarshal(text, scale); err != nil {
			return nil, invalidPatch(text, err)
		}
		return scale, nil
	})
}

// rescale gives the object the number of replicas that next makes of its Scale.
func (s *Server) rescale(w http.ResponseWriter, q *writing, next func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error)) error {
	obj, _, err := s.change(q, false, func(old *object) (*object, error) {
		was := q.kind.scaleOf(old)
		scale, err := next(was)
		if err != nil {
			return nil, err
		}
		switch {
		case scale.UID != "" && scale.UID != was.UID:
			return nil, errPrecondition(q.kind.resource(), q.name, "UID", string(scale.UID), string(was.UID))
		case scale.ResourceVersion != "" && scale.ResourceVersion != was.ResourceVersion:
			return nil, errConflict(q.kind.resource(), q.name)
		case scale.Spec.Replicas < 0:
			return nil, apierrors.NewInvalid(scaleKind.GroupKind(), q.name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")})
		}
		obj := old.copy()
		if err := unstructured.SetNestedField(obj.fields, int64(scale.Spec.Replicas), q.kind.scale.spec...); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return obj, q.ownReplicas(old, obj)
	})
	if err != nil {
		return err
	}
	return s.respondTyped(w, q, http.StatusOK, scaleKind, q.kind.scaleOf(obj))
}

// ownReplicas notes who has set the number of replicas, as an entry of the scale
// subresource.
func (q *writing) ownReplicas(old, obj *object) error {
	if numberAt(old.fields, q.kind.scale.spec) == numberAt(obj.fields, q.kind.scale.spec) {
		return nil
	}
	path := fieldpath.Path{}
	for _, name := range q.kind.scale.spec {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	version := q.kind.GroupVersion()
	mapping := managedfields.NewScaleHandler(old.meta().GetManagedFields(), version, managedfields.ResourcePathMappings{version.String(): path})
	mine, err := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas")).ToJSON()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: q.manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: scaleKind.GroupVersion().String(), Time: new(now()),
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: mine}, Subresource: "scale",
	}
	entries, err := mapping.ToParent([]metav1.ManagedFieldsEntry{entry})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	obj.meta().SetManagedFields(entries)
	return nil
}
