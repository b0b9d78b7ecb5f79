// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Field managers of what actors write.
const (
	byControllers = "kube-controller-manager"
	byScheduler   = "kube-scheduler"
	byKubelet     = "kubelet"
)

// create stores a new object of a built-in kind.
func (c *controllers) create(ctx context.Context, manager string, r schema.GroupResource, typed metav1.Object) (*object.Object, error) {
	return c.cluster.Create(ctx, manager, r, typed)
}

// update changes an object in its Go type: all of it but the status, or through a
// subresource. A change that changes nothing is not written.
func update[T any, P goPointer[T]](ctx context.Context, c *controllers, manager string, about Reference, subresource string, edit func(*T)) (*T, error) {
	obj, err := c.cluster.Update(ctx, manager, about, subresource, func(old *object.Object) (*object.Object, error) {
		typed, err := readingOf[T, P](c, about, old)
		if err != nil {
			return nil, err
		}
		edit(typed)
		obj := &object.Object{Fields: old.Fields, Corrupt: old.Corrupt}
		if err := object.Retype(obj, typed); err != nil {
			return nil, err
		}
		jsontree.KeepField(object.MetadataOf(old), object.MetadataOf(obj), "managedFields")
		return obj, nil
	})
	if err != nil {
		return nil, err
	}
	return readingOf[T, P](c, about, obj)
}

// edit changes the fields of an object of any kind.
func (c *controllers) edit(ctx context.Context, about Reference, subresource string, edit func(obj *object.Object)) error {
	_, err := c.cluster.Update(ctx, byControllers, about, subresource, func(old *object.Object) (*object.Object, error) {
		obj := old.Copy()
		edit(obj)
		return obj, nil
	})
	return err
}

// remove deletes an object, if it is still the one that the actor has seen.
func (c *controllers) remove(ctx context.Context, about Reference, seen *object.Object, policy metav1.DeletionPropagation, grace *int64) error {
	uid, version := seen.Meta().GetUID(), seen.Meta().GetResourceVersion()
	opts := metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if policy != "" {
		opts.PropagationPolicy = &policy
	}
	return c.cluster.Delete(ctx, byControllers, about, &opts)
}

// discard deletes an object that may be gone already.
func (c *controllers) discard(ctx context.Context, about Reference) error {
	if held := c.get(about); held != nil {
		if err := c.remove(ctx, about, held, "", nil); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
