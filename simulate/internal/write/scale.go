// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// ScaleKind is the kind of the subresource scale.
var ScaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// ScaleOf returns the Scale of an object.
func ScaleOf(k *kinds.Kind, obj *object.Object) *autoscalingv1.Scale {
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

// UpdateScale sets the number of replicas of the object that q addresses to that of a Scale.
func (p *Path) UpdateScale(ctx context.Context, q *Request, given *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	if given.Name != "" && given.Name != q.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", given.Name, q.Name))
	}
	writer := fieldmanager.Writer{Kind: KindOfScale(q.Kind), Subresource: "scale", Manager: q.Manager}
	return p.rescale(ctx, q, func(live *object.Object) (*object.Object, error) {
		obj, err := kinds.ObjectOfTyped(writer.Kind, given)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj, writer.Own(live, obj)
	})
}

// PatchScale patches the Scale of an object of a kind. The kind of q is that of the Scale.
func (p *Path) PatchScale(ctx context.Context, q *Request, kind *kinds.Kind) (*autoscalingv1.Scale, error) {
	whole := *q
	whole.Kind, whole.Warnings = kind, nil
	defer func() { q.Warnings = append(q.Warnings, whole.Warnings...) }()
	if q.applies() {
		given := map[string]any{}
		if err := unmarshalYAML(q.Body, &given, false); err != nil || decode.Nesting(q.Body) > decode.Deepest {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
		}
		return p.rescale(ctx, &whole, func(live *object.Object) (*object.Object, error) { return q.writer().Applied(given, live) })
	}
	patch, err := q.readPatch()
	if err != nil {
		return nil, err
	}
	return p.rescale(ctx, &whole, func(live *object.Object) (*object.Object, error) {
		obj, err := q.patched(patch, live)
		if err != nil {
			return nil, err
		}
		return obj, q.Own(live, obj)
	})
}

// KindOfScale returns the kind Scale as the subresource of k.
func KindOfScale(k *kinds.Kind) *kinds.Kind {
	typed := kinds.Kind{GroupVersionKind: ScaleKind, Resource: k.Resource, Namespaced: k.Namespaced}.Completed()
	typed.Managers = k.ScaleManagers
	typed.Schema = kinds.Deduced(typed)
	return typed
}

// rescale sets the number of replicas of an object to that of the Scale that next returns for
// the present one.
func (p *Path) rescale(ctx context.Context, q *Request, next func(live *object.Object) (*object.Object, error)) (*autoscalingv1.Scale, error) {
	only := KindOfScale(q.Kind)
	obj, _, err := p.Change(ctx, q, false, func(old *object.Object) (*object.Object, error) {
		was := ScaleOf(q.Kind, old)
		owners, err := scaleOwners(q.Kind, old)
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
			return nil, errUID(q, scale.UID, was.UID)
		case scale.ResourceVersion != "" && scale.ResourceVersion != was.ResourceVersion:
			return nil, refusal.Conflict(q.Kind.GroupResource(), q.Name)
		case scale.Spec.Replicas < 0 && q.Kind.Builtin:
			return nil, apierrors.NewInvalid(ScaleKind.GroupKind(), q.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")})
		}
		obj := old.Copy()
		if err := unstructured.SetNestedField(obj.Fields, int64(scale.Spec.Replicas), q.Kind.Scale.Spec...); err != nil {
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
		return nil, err
	}
	return ScaleOf(q.Kind, obj), nil
}

// scaleOwners translates between the managed fields of an object and those of its Scale.
func scaleOwners(k *kinds.Kind, obj *object.Object) (*managedfields.ScaleHandler, error) {
	if len(k.Scale.Spec) == 0 {
		return nil, errors.New("the kind has no path to its number of replicas")
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
