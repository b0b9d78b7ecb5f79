// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// pastTemplates are the templates that a StatefulSet or DaemonSet has had, each stored in a
// ControllerRevision, the oldest first.
type pastTemplates struct {
	*controllers
	of  metav1.Object
	gvk schema.GroupVersionKind
}

var revisionResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

func (r pastTemplates) kept() (out []*appsv1.ControllerRevision) {
	for _, about := range r.index.of(r.of.GetUID()) {
		if kept := read[appsv1.ControllerRevision](r.controllers, about); about.GroupResource == revisionResource && kept != nil {
			out = append(out, kept)
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// saveRevision stores a template as the newest, and returns its name and its hash. A
// template that is stored already gets a new number.
func (r pastTemplates) saveRevision(ctx context.Context, template *corev1.PodTemplateSpec) (name, hash string, err error) {
	kept := r.kept()
	hash = hashOf(template, nil)
	name = r.of.GetName() + "-" + hash
	next := int64(1)
	if len(kept) > 0 {
		next = kept[len(kept)-1].Revision + 1
	}
	for i, is := range kept {
		if is.Name != name {
			continue
		}
		if i == len(kept)-1 {
			return name, hash, nil
		}
		_, err := update(ctx, r.controllers, byControllers, Reference{revisionResource, object.NameOf(is)}, "", func(c *appsv1.ControllerRevision) { c.Revision = next })
		return name, hash, err
	}
	data, err := patchOf(template)
	if err != nil {
		return name, hash, err
	}
	made := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}, Revision: next}
	made.Namespace, made.Name = r.of.GetNamespace(), name
	made.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}
	maps.Copy(made.Labels, template.Labels)
	made.OwnerReferences = controlledBy(r.of, r.gvk)
	if _, err = r.create(ctx, byControllers, revisionResource, made); apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return name, hash, err
}

// patchOf returns a patch that restores a template.
func patchOf(template *corev1.PodTemplateSpec) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, err
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// tidy deletes the oldest templates that no Pod uses.
func (r pastTemplates) tidy(ctx context.Context, limit *int32, used func(hash string) bool) error {
	if limit == nil {
		return nil
	}
	spare := without(r.kept(), func(is *appsv1.ControllerRevision) bool {
		return used(is.Labels[appsv1.ControllerRevisionHashLabelKey])
	})
	for _, is := range spare[:max(0, len(spare)-int(*limit))] {
		if err := r.discard(ctx, Reference{revisionResource, object.NameOf(is)}); err != nil {
			return err
		}
	}
	return nil
}
