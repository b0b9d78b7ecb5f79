// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
)

// Who is said to own what actors write.
const (
	byControllers = "kube-controller-manager"
	byScheduler   = "kube-scheduler"
	byKubelet     = "kubelet"
)

// writing is a write of an actor, about an object and perhaps a subresource of
// it.
func (c *company) writing(ctx context.Context, manager, verb string, about reference, subresource string) (*writing, error) {
	c.server.mu.Lock()
	kind := c.server.storedLocked(about.GroupResource)
	c.server.mu.Unlock()
	if kind == nil {
		return nil, apierrors.NewNotFound(about.GroupResource, about.Name)
	}
	return &writing{manager: manager, call: &call{
		Request: request(ctx), verb: verb, user: User{Name: "system:" + manager, Groups: []string{groupMasters, groupAuthenticated}},
		kind: kind, namespace: about.Namespace, name: about.Name, subresource: subresource,
	}}, nil
}

// create stores a new object, of a built-in kind.
func (c *company) create(ctx context.Context, manager string, r schema.GroupResource, typed metav1.Object) (*object, error) {
	q, err := c.writing(ctx, manager, "create", reference{GroupResource: r}, "")
	if err != nil {
		return nil, err
	}
	q.namespace = typed.GetNamespace()
	made, ok := typed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("create a %T", typed)
	}
	defaults.Set(made)
	obj, err := objectOfTyped(q.kind, made)
	if err != nil {
		return nil, err
	}
	if metadata, _ := obj.fields["metadata"].(map[string]any); metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return c.server.createObject(q, obj)
}

// update changes an object in its Go type, all of it but the status, or through
// a subresource. A change that changes nothing is no write.
func update[T any, P goPointer[T]](ctx context.Context, c *company, manager string, about reference, subresource string, edit func(*T)) (*T, error) {
	q, err := c.writing(ctx, manager, "update", about, subresource)
	if err != nil {
		return nil, err
	}
	obj, _, err := c.server.change(q, false, func(old *object) (*object, error) {
		typed, err := readingOf[T, P](c, about, old)
		if err != nil {
			return nil, err
		}
		edit(typed)
		obj := &object{fields: old.fields, poison: old.poison}
		if err := retype(obj, typed); err != nil {
			return nil, err
		}
		jsonvalue.KeepField(metadataOf(old), metadataOf(obj), "managedFields")
		if same(old, obj) {
			return obj, nil
		}
		return obj, q.own(old, obj)
	})
	if err != nil {
		return nil, err
	}
	return readingOf[T, P](c, about, obj)
}

// edit changes the fields of an object of any kind.
func (c *company) edit(ctx context.Context, about reference, subresource string, edit func(obj *object)) error {
	q, err := c.writing(ctx, byControllers, "update", about, subresource)
	if err != nil {
		return err
	}
	_, _, err = c.server.change(q, false, func(old *object) (*object, error) {
		obj := old.copy()
		if edit(obj); same(old, obj) {
			return obj, nil
		}
		return obj, q.own(old, obj)
	})
	return err
}

// remove deletes an object, if it is still the one that the actor has seen.
func (c *company) remove(ctx context.Context, about reference, seen *object, policy metav1.DeletionPropagation, grace *int64) error {
	q, err := c.writing(ctx, byControllers, "delete", about, "")
	if err != nil {
		return err
	}
	uid, version := seen.meta().GetUID(), seen.meta().GetResourceVersion()
	opts := metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if policy != "" {
		opts.PropagationPolicy = &policy
	}
	_, _, err = c.server.deleteObject(q, &opts)
	return err
}
