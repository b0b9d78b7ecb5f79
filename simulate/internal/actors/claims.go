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

// claim is the set of objects that belong to an owner: those that it controls, and those
// that have no controller and match its selector.
type claim struct {
	about    Reference
	uid      types.UID
	kind     string
	selector *metav1.LabelSelector
	ending   bool // adopts no more objects
}

// claimed returns the objects of a kind that belong to an owner. It adopts objects without
// a controller, and releases those that its selector does not match.
func claimed[T any, P goPointer[T]](ctx context.Context, c *controllers, of claim, r schema.GroupResource) (out []*T, err error) {
	selector, err := metav1.LabelSelectorAsSelector(of.selector)
	if err != nil || selector.Empty() {
		return nil, err
	}
	for _, about := range c.index.each(r, of.about.Namespace) {
		obj := c.get(about)
		if obj == nil {
			continue
		}
		mine, err := c.claimObject(ctx, of, selector, about, obj)
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

// claimObject decides whether one object belongs to the owner, and updates its owner
// references.
func (c *controllers) claimObject(ctx context.Context, of claim, selector labels.Selector, about Reference, obj *object.Object) (mine bool, err error) {
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

func (c *controllers) apiVersion(r schema.GroupResource) string {
	gv, _ := c.cluster.Stored(r)
	return gv.String()
}

func controllerReference(kind, apiVersion, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}
}

// controlledBy returns the owner references of an object that a controller's object
// creates.
func controlledBy(m metav1.Object, gvk schema.GroupVersionKind) []metav1.OwnerReference {
	return []metav1.OwnerReference{controllerReference(gvk.Kind, gvk.GroupVersion().String(), m.GetName(), m.GetUID())}
}

// observePods handles a change of the owner's kind or of a Pod, for an owner of Pods.
func (c *controllers) observePods(change revisions.Change, own schema.GroupResource, look func(Reference)) {
	switch change.Resource {
	case own:
		look(aboutOf(change))
	case object.Pods:
		c.lookAtControllers(change, own, look)
	}
}

// lookAtControllers looks at the controllers of a changed object: the present one, the
// former one, or if there is none, all that could adopt it.
func (c *controllers) lookAtControllers(change revisions.Change, of schema.GroupResource, look func(Reference)) {
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
func (c *controllers) matches(candidate Reference, obj *object.Object) bool {
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

// podOf returns a new Pod of a template.
func podOf(template *corev1.PodTemplateSpec, owner metav1.Object, gvk schema.GroupVersionKind) *corev1.Pod {
	template = template.DeepCopy()
	pod := &corev1.Pod{Spec: template.Spec}
	pod.Labels, pod.Annotations, pod.Finalizers = template.Labels, template.Annotations, template.Finalizers
	pod.Namespace, pod.GenerateName = owner.GetNamespace(), owner.GetName()+"-"
	pod.OwnerReferences = controlledBy(owner, gvk)
	return pod
}

// ended reports whether all containers of a Pod have ended for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// lives reports whether a Pod counts as a replica of its controller.
func lives(pod *corev1.Pod) bool { return !ended(pod) && object.Unset(pod.DeletionTimestamp) }
