// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// claim is what a controller's object counts as its own: what it controls, and
// what nobody controls and its selector matches.
type claim struct {
	about    Reference
	uid      types.UID
	kind     string
	selector *metav1.LabelSelector
	ending   bool // takes nobody in any more
}

// claimed are the objects of a kind that are an owner's. It takes in those that
// nobody controls, and lets go those that its selector does not match.
func claimed[T any, P goPointer[T]](ctx context.Context, c *company, of claim, r schema.GroupResource) (out []*T, err error) {
	selector, err := metav1.LabelSelectorAsSelector(of.selector)
	if err != nil || selector.Empty() {
		return nil, err
	}
	for _, about := range c.index.each(r, of.about.Namespace) {
		obj := c.get(about)
		if obj == nil {
			continue
		}
		mine, err := c.settle(ctx, of, selector, about, obj)
		if err != nil {
			return nil, err
		}
		if !mine {
			continue
		}
		if typed := read[T, P](c, about); typed != nil {
			out = append(out, typed)
		}
	}
	return out, nil
}

// settle decides about one object, and changes its owners accordingly.
func (c *company) settle(ctx context.Context, of claim, selector labels.Selector, about Reference, obj *object.Object) (mine bool, err error) {
	matches := selector.Matches(object.LabelSet(obj))
	switch controllerOf(obj) {
	case of.uid:
		if matches || of.ending {
			return true, nil
		}
		return false, c.edit(ctx, about, "", func(obj *object.Object) {
			obj.Meta().SetOwnerReferences(without(obj.Meta().GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == of.uid }))
		})
	case "":
		if !matches || of.ending || !object.Unset(obj.Meta().GetDeletionTimestamp()) || finished(obj) {
			return false, nil
		}
		ref := controllerReference(of.kind, c.apiVersion(of.about.GroupResource), of.about.Name, of.uid)
		return true, c.edit(ctx, about, "", func(obj *object.Object) {
			obj.Meta().SetOwnerReferences(append(obj.Meta().GetOwnerReferences(), ref))
		})
	}
	return false, nil
}

// finished reports whether an object is a Pod that has ended.
func finished(obj *object.Object) bool {
	status, _ := obj.Fields["status"].(map[string]any)
	return status["phase"] == string(corev1.PodFailed) || status["phase"] == string(corev1.PodSucceeded)
}

func (c *company) apiVersion(r schema.GroupResource) string {
	gv, _ := c.cluster.Stored(r)
	return gv.String()
}

func controllerReference(kind, apiVersion, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}
}

// controlledBy are the owner references of what an object makes.
func controlledBy(m metav1.Object, gvk schema.GroupVersionKind) []metav1.OwnerReference {
	return []metav1.OwnerReference{controllerReference(gvk.Kind, gvk.GroupVersion().String(), m.GetName(), m.GetUID())}
}

// heedPods is how the owner of Pods heeds a change: one of its own kind, or of a
// Pod.
func (c *company) heedPods(change revisions.Change, own schema.GroupResource, look func(Reference)) {
	switch change.Resource {
	case own:
		look(aboutOf(change))
	case object.Pods:
		c.lookAtControllers(change, own, look)
	}
}

// lookAtControllers has a look at who controls what has changed, did so before,
// or, when nobody does, could.
func (c *company) lookAtControllers(change revisions.Change, of schema.GroupResource, look func(Reference)) {
	for _, obj := range []*object.Object{change.Before, change.After} {
		uid := controllerOf(obj)
		if owner, known := c.index.identities[uid]; known && owner.GroupResource == of {
			look(owner)
		}
		if uid == "" && obj != nil && obj == change.After {
			for _, candidate := range c.index.each(of, change.Key.Namespace) {
				if c.matches(candidate, obj) {
					look(candidate)
				}
			}
		}
	}
}

// matches reports whether the selector of a controller's object matches obj.
func (c *company) matches(candidate Reference, obj *object.Object) bool {
	held := c.get(candidate)
	if held == nil {
		return false
	}
	part, err := object.TypedOf[struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
	}](held)
	if err != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(part.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(object.LabelSet(obj))
}

// podOf is a new Pod of a template.
func podOf(template *corev1.PodTemplateSpec, owner metav1.Object, gvk schema.GroupVersionKind) *corev1.Pod {
	template = template.DeepCopy()
	pod := &corev1.Pod{Spec: template.Spec}
	pod.Labels, pod.Annotations, pod.Finalizers = template.Labels, template.Annotations, template.Finalizers
	pod.Namespace, pod.GenerateName = owner.GetNamespace(), owner.GetName()+"-"
	pod.OwnerReferences = controlledBy(owner, gvk)
	return pod
}

// ended reports whether a Pod's containers have all ended for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// lives reports whether a Pod counts for who controls it.
func lives(pod *corev1.Pod) bool { return !ended(pod) && object.Unset(pod.DeletionTimestamp) }
