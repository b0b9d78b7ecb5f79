// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package habits

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

const (
	finalizer = "example.com/habit"
	mark      = "example.com/step"
)

// Habit is a reconciler that makes one step for each event.
type Habit struct {
	// Name of its object: the step, and the call that makes it.
	Name string
	// Omits: it stops after its first step if own events are omitted.
	Omits bool

	has  int  // children that exist before
	ends bool // its object is deleted
	step step
}

// step returns the next write that d needs. Nil means that all is done.
type step func(ctx context.Context, c Client, d *appsv1.Deployment) (next func() error, err error)

// write makes a step on an object.
type write func(ctx context.Context, c Client, obj kube.Object) error

func update(ctx context.Context, c Client, obj kube.Object) error { return c.Update(ctx, obj) }

// All has every habit, those that are alike side by side.
var All = []Habit{
	{Name: "finalizer-by-update", Omits: true,
		step: finalize(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			to := kube.Copy(d)
			to.Finalizers = append(to.Finalizers, finalizer)
			return c.Update(ctx, to)
		})},
	{Name: "finalizer-by-patch-changes", Omits: true,
		step: finalize(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			to := kube.Copy(d)
			to.Finalizers = append(to.Finalizers, finalizer)
			return c.PatchChanges(ctx, d, to)
		})},
	{Name: "finalizer-by-set-finalizers", Omits: true,
		step: finalize(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			return c.SetFinalizers(ctx, d, []string{finalizer})
		})},
	{Name: "finalizer-by-merge-patch",
		step: finalize(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			return c.Patch(ctx, kube.Copy(d), `{"metadata":{"finalizers":["`+finalizer+`"]}}`)
		})},

	{Name: "phase-by-status-update", Omits: true,
		step: phase(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			to := kube.Copy(d)
			to.Status.ObservedGeneration = 1
			return c.UpdateStatus(ctx, to)
		})},
	{Name: "phase-by-patch-changes", Omits: true,
		step: phase(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			to := kube.Copy(d)
			to.Status.ObservedGeneration = 1
			return c.PatchChanges(ctx, d, to)
		})},
	{Name: "phase-by-status-merge-patch",
		step: phase(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			return c.PatchStatus(ctx, kube.Copy(d), `{"status":{"observedGeneration":1}}`)
		})},
	{Name: "phase-by-status-apply",
		step: phase(func(ctx context.Context, c Client, d *appsv1.Deployment) error {
			status := appsac.DeploymentStatus().WithObservedGeneration(1)
			return c.ApplyStatus(ctx, appsac.Deployment(d.Name, d.Namespace).WithStatus(status))
		})},

	{Name: "children-by-create", Omits: true,
		step: children(func(ctx context.Context, c Client, obj *corev1.ConfigMap) error {
			return c.Create(ctx, obj)
		})},
	{Name: "children-by-apply", Omits: true,
		step: children(func(ctx context.Context, c Client, obj *corev1.ConfigMap) error {
			return c.Apply(ctx, obj, false)
		})},
	{Name: "children-by-apply-if-changed", Omits: true,
		step: children(func(ctx context.Context, c Client, obj *corev1.ConfigMap) error {
			return c.Apply(ctx, obj, true)
		})},
	{Name: "children-by-create-or-update", Omits: true,
		step: children(func(ctx context.Context, c Client, obj *corev1.ConfigMap) error {
			return c.CreateOrUpdate(ctx, obj)
		})},
	{Name: "children-by-child-set", Omits: true,
		step: func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
			missing, err := firstMissing(ctx, c, d)
			if err != nil || missing == 2 {
				return nil, err
			}
			wanted := []kube.Object{child(d, 0), child(d, 1)}
			return func() error { return c.ApplyChildren(ctx, d, wanted[:missing+1]...) }, nil
		}},

	{Name: "child-by-update", Omits: true, has: 1, step: changed(update)},
	{Name: "child-by-patch-changes", has: 1,
		step: changed(func(ctx context.Context, c Client, obj kube.Object) error {
			from := kube.Copy(obj.(*corev1.ConfigMap))
			from.Data = nil
			return c.PatchChanges(ctx, from, obj)
		})},
	{Name: "child-by-create-or-update", has: 1,
		step: changed(func(ctx context.Context, c Client, obj kube.Object) error {
			return c.CreateOrUpdate(ctx, obj.(*corev1.ConfigMap))
		})},

	{Name: "again-by-delete", has: 1,
		step: again(func(ctx context.Context, c Client, obj kube.Object) error {
			return c.Delete(ctx, obj, "", "")
		})},
	{Name: "again-by-delete-with-uid", has: 1,
		step: again(func(ctx context.Context, c Client, obj kube.Object) error {
			return c.Delete(ctx, obj, string(obj.GetUID()), "")
		})},
	{Name: "again-by-delete-with-version", Omits: true, has: 1,
		step: again(func(ctx context.Context, c Client, obj kube.Object) error {
			return c.Delete(ctx, obj, string(obj.GetUID()), obj.GetResourceVersion())
		})},

	{Name: "default-by-update", Omits: true,
		step: defaulted(func(ctx context.Context, c Client, _, to *appsv1.Deployment) error {
			return c.Update(ctx, to)
		})},
	{Name: "default-by-patch-changes",
		step: defaulted(func(ctx context.Context, c Client, from, to *appsv1.Deployment) error {
			return c.PatchChanges(ctx, from, to)
		})},

	{Name: "annotation-by-update", Omits: true, step: annotated(update)},
	{Name: "annotation-with-background",
		step: annotated(func(_ context.Context, c Client, obj kube.Object) error {
			return c.Update(context.Background(), obj)
		})},
	{Name: "annotation-from-a-goroutine", Omits: true,
		step: annotated(func(ctx context.Context, c Client, obj kube.Object) error {
			var err error
			var other sync.WaitGroup
			other.Go(func() { err = c.Update(ctx, obj) })
			other.Wait()
			return err
		})},
	{Name: "annotation-by-another-client",
		step: annotated(func(ctx context.Context, c Client, obj kube.Object) error {
			return c.UpdateElsewhere(ctx, obj)
		})},

	{Name: "deletion", has: 1, ends: true, step: cleanUp},
	{Name: "deletion-in-two-steps", has: 2, ends: true, step: cleanUp},
}

// then returns the step after the first one: a child.
func then(ctx context.Context, c Client, d *appsv1.Deployment, n int) (func() error, error) {
	_, err := c.Child(ctx, kube.KeyOf(child(d, n)))
	if apierrors.IsNotFound(err) {
		return func() error { return c.Create(ctx, child(d, n)) }, nil
	}
	return nil, err
}

func finalize(add func(ctx context.Context, c Client, d *appsv1.Deployment) error) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		if len(d.Finalizers) == 0 {
			return func() error { return add(ctx, c, d) }, nil
		}
		return then(ctx, c, d, 0)
	}
}

func phase(set func(ctx context.Context, c Client, d *appsv1.Deployment) error) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		if d.Status.ObservedGeneration == 0 {
			return func() error { return set(ctx, c, d) }, nil
		}
		return then(ctx, c, d, 0)
	}
}

func children(add func(ctx context.Context, c Client, obj *corev1.ConfigMap) error) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		missing, err := firstMissing(ctx, c, d)
		if err != nil || missing == 2 {
			return nil, err
		}
		return func() error { return add(ctx, c, child(d, missing)) }, nil
	}
}

func changed(change write) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		is, err := c.Child(ctx, kube.KeyOf(child(d, 0)))
		if err != nil {
			return nil, err
		}
		if is.Data["step"] == "" {
			to := kube.Copy(is)
			to.Data = map[string]string{"step": "1"}
			return func() error { return change(ctx, c, to) }, nil
		}
		return then(ctx, c, d, 1)
	}
}

func again(remove write) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		is, err := c.Child(ctx, kube.KeyOf(child(d, 0)))
		if apierrors.IsNotFound(err) {
			made := child(d, 0)
			made.Data = map[string]string{"step": "1"}
			return func() error { return c.Create(ctx, made) }, nil
		}
		if err != nil {
			return nil, err
		}
		if is.Data["step"] == "" {
			return func() error { return remove(ctx, c, kube.Copy(is)) }, nil
		}
		return nil, nil
	}
}

func defaulted(set func(ctx context.Context, c Client, from, to *appsv1.Deployment) error) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		if d.Spec.MinReadySeconds == 0 {
			to := kube.Copy(d)
			to.Spec.MinReadySeconds = 5
			return func() error { return set(ctx, c, d, to) }, nil
		}
		return then(ctx, c, d, 0)
	}
}

func annotated(set write) step {
	return func(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
		if d.Annotations[mark] == "" {
			to := kube.Copy(d)
			metav1.SetMetaDataAnnotation(&to.ObjectMeta, mark, "1")
			return func() error { return set(ctx, c, to) }, nil
		}
		return then(ctx, c, d, 0)
	}
}

func cleanUp(ctx context.Context, c Client, d *appsv1.Deployment) (func() error, error) {
	for n := range 2 {
		is, err := c.Child(ctx, kube.KeyOf(child(d, n)))
		if err == nil {
			return func() error { return c.Delete(ctx, is, "", "") }, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return func() error { return c.SetFinalizers(ctx, d, nil) }, nil
}

// child returns the nth child of d.
func child(d *appsv1.Deployment, n int) *corev1.ConfigMap {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: fmt.Sprintf("%s-%d", d.Name, n),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
		},
	}
}

// firstMissing returns the first of two children that is missing; 2: none is.
func firstMissing(ctx context.Context, c Client, d *appsv1.Deployment) (int, error) {
	for n := range 2 {
		if _, err := c.Child(ctx, kube.KeyOf(child(d, n))); apierrors.IsNotFound(err) {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
	return 2, nil
}

// Reconcile makes the next step of the habit of d.
func Reconcile(ctx context.Context, c Client, d *appsv1.Deployment) error {
	for _, h := range All {
		if h.Name != d.Name || h.ends != !d.DeletionTimestamp.IsZero() {
			continue
		}
		next, err := h.step(ctx, c, d)
		if err != nil || next == nil {
			return err
		}
		return next()
	}
	return nil
}

// Seed creates what the habits begin with, before their controller starts.
func Seed(ctx context.Context, c *client.Client, namespace string) error {
	for _, h := range All {
		labels := map[string]string{"habit": h.Name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: h.Name}}
		d.Spec.Replicas, d.Spec.Selector = new(int32(0)), &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		if h.ends {
			d.Finalizers = []string{finalizer}
		}
		if err := c.Create(ctx, d); err != nil {
			return err
		}
		for n := range h.has {
			if err := c.Create(ctx, child(d, n)); err != nil {
				return err
			}
		}
		if h.ends {
			if err := c.Delete(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unfinished returns the names of the habits whose steps are not all done. c reads the server.
func Unfinished(ctx context.Context, c *client.Client, namespace string) (names []string, err error) {
	for _, h := range All {
		d := &appsv1.Deployment{}
		err := c.Get(ctx, kube.Key{Namespace: namespace, Name: h.Name}, d)
		if apierrors.IsNotFound(err) && h.ends {
			continue
		}
		if err != nil {
			return nil, err
		}
		if next, err := h.step(ctx, live{c: c}, d); err != nil {
			return nil, err
		} else if next != nil {
			names = append(names, h.Name)
		}
	}
	return names, nil
}

// live reads children from the server.
type live struct {
	Client
	c *client.Client
}

func (l live) Child(ctx context.Context, key kube.Key) (*corev1.ConfigMap, error) {
	obj := &corev1.ConfigMap{}
	return obj, l.c.Get(ctx, key, obj)
}
