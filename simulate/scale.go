// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
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

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaleOf is the Scale of an object.
func scaleOf(k *kinds.Kind, obj *object.Object) *autoscalingv1.Scale {
	m, p := obj.Meta(), k.Scale
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(), CreationTimestamp: m.GetCreationTimestamp(),
	}}
	scale.Spec.Replicas = numberAt(obj.Fields, p.Spec)
	scale.Status.Replicas = numberAt(obj.Fields, p.Status)
	switch {
	case len(p.Selector) == 0:
	case p.PlainSelector:
		labels, _, _ := unstructured.NestedStringMap(obj.Fields, p.Selector...)
		scale.Status.Selector = metav1.FormatLabelSelector(metav1.SetAsLabelSelector(labels))
	case p.Builtin:
		fields, _, _ := unstructured.NestedMap(obj.Fields, p.Selector...)
		var selector metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) == nil {
			scale.Status.Selector = metav1.FormatLabelSelector(&selector)
		}
	default:
		scale.Status.Selector, _, _ = unstructured.NestedString(obj.Fields, p.Selector...)
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
	return s.respondTyped(w, &writing{call: c}, http.StatusOK, scaleKind, scaleOf(c.kind, obj))
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
	only := &writing{call: &call{Request: c.Request, kind: scaleOnly(c.kind), namespace: c.namespace, name: c.name, subresource: "scale"}, manager: q.manager}
	return s.rescale(w, q, func(live *object.Object) (*object.Object, error) {
		obj, err := kinds.ObjectOfTyped(only.kind, given)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj, only.own(live, obj)
	})
}

// patchScale answers a PATCH of an object's scale.
func (s *Server) patchScale(w http.ResponseWriter, c *call) error {
	of := *c
	of.kind = scaleOnly(c.kind)
	q, err := of.writing()
	if err != nil {
		return err
	}
	whole := &writing{call: c, media: q.media, body: q.body, dryRun: q.dryRun, manager: q.manager, force: q.force, validation: q.validation}
	if q.applies() {
		given := map[string]any{}
		if err := unmarshalYAML(q.body, &given, false); err != nil || decode.Nesting(q.body) > decode.Deepest {
			return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
		}
		return s.rescale(w, whole, func(live *object.Object) (*object.Object, error) { return q.writer().Applied(given, live) })
	}
	patch, err := q.readPatch()
	if err != nil {
		return err
	}
	return s.rescale(w, whole, func(live *object.Object) (*object.Object, error) {
		obj, err := q.patched(patch, live)
		if err != nil {
			return nil, err
		}
		return obj, q.own(live, obj)
	})
}

// scaleOnly is the kind Scale, as the subresource of k.
func scaleOnly(k *kinds.Kind) *kinds.Kind {
	typed := kinds.Kind{GroupVersionKind: scaleKind, Resource: k.Resource, Namespaced: k.Namespaced}.Completed()
	typed.Managers = k.ScaleManagers
	typed.Schema = kinds.Deduced(typed)
	return typed
}

// rescale gives the object the number of replicas that next makes of its Scale.
func (s *Server) rescale(w http.ResponseWriter, q *writing, next func(live *object.Object) (*object.Object, error)) error {
	only := scaleOnly(q.kind)
	obj, _, err := s.change(q, false, func(old *object.Object) (*object.Object, error) {
		was := scaleOf(q.kind, old)
		owners, err := scaleOwners(q.kind, old)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if was.ManagedFields, err = owners.ToSubresource(); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		live, err := kinds.ObjectOfTyped(only, was)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		made, err := next(live)
		if err != nil {
			return nil, err
		}
		scale, err := object.TypedOf[autoscalingv1.Scale](made)
		if err != nil {
			return nil, decode.InvalidPatch(nil, err)
		}
		switch {
		case scale.UID != "" && scale.UID != was.UID:
			return nil, errOtherUID(q.kind, q.key(), scale.UID, was.UID)
		case scale.ResourceVersion != "" && scale.ResourceVersion != was.ResourceVersion:
			return nil, refusal.Conflict(q.kind.GroupResource(), q.name)
		case scale.Spec.Replicas < 0 && q.kind.Builtin:
			return nil, apierrors.NewInvalid(scaleKind.GroupKind(), q.name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")})
		}
		obj := old.Copy()
		if err := unstructured.SetNestedField(obj.Fields, int64(scale.Spec.Replicas), q.kind.Scale.Spec...); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		entries, err := owners.ToParent(scale.ManagedFields)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		obj.Meta().SetManagedFields(entries)
		return obj, nil
	})
	if err != nil {
		return err
	}
	return s.respondTyped(w, q, http.StatusOK, scaleKind, scaleOf(q.kind, obj))
}

// scaleOwners translates between who owns fields of an object and who owns
// those of its Scale.
func scaleOwners(k *kinds.Kind, obj *object.Object) (*managedfields.ScaleHandler, error) {
	if len(k.Scale.Spec) == 0 {
		return nil, errors.New("the kind says nowhere how many replicas it has")
	}
	var path fieldpath.Path
	for _, name := range k.Scale.Spec {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	paths := managedfields.ResourcePathMappings{}
	for _, version := range k.Family.Versions {
		paths[version.GroupVersion().String()] = path
	}
	return managedfields.NewScaleHandler(obj.Meta().GetManagedFields(), k.GroupVersion(), paths), nil
}
