// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// ReadChild reads the metadata of the object with child's kind, namespace and name from
// the API server. If there is none, apierrors.IsNotFound holds for the error. child is
// not modified.
func (c *Client) ReadChild(ctx context.Context, child kube.Object) (kube.Object, error) {
	if isNil(child) {
		return nil, errors.New("read child: it is nil")
	}
	kind, err := c.KindOf(child)
	if err != nil {
		return nil, fmt.Errorf("read child: %w", err)
	}
	return metadataOf(ctx, c, kind, kube.KeyOf(child))
}

// metadataOf reads the metadata of an object.
func metadataOf(ctx context.Context, c *Client, kind schema.GroupVersionKind, key kube.Key) (*metav1.PartialObjectMetadata, error) {
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(kind)
	return is, c.Get(ctx, key, is)
}

// ApplyChild is Apply with Force and IfChanged, as fieldOwner or, if that is empty, as the
// client's own field owner. It calls confirm, unless it is nil, before it sends a request; an
// error of confirm is returned, and nothing is sent. reconcile.ChildSet writes with it.
func (c *Client) ApplyChild(ctx context.Context, child kube.Object, fieldOwner string, confirm func(context.Context) error) error {
	opts := []Option{Force{}, IfChanged{}, confirmed(confirm)}
	if fieldOwner != "" {
		opts = append(opts, FieldOwner(fieldOwner))
	}
	return c.Apply(ctx, child, opts...)
}

// confirmed is called before a request is sent. Its error prevents that.
type confirmed func(context.Context) error

func (confirmed) fits() verb                 { return verbApply }
func (f confirmed) set(c *callOptions) error { c.confirm = f; return nil }

// EnsureChild sets child to the object on the server with its kind, namespace and name, and
// leaves that as it is. If there is none, it calls prepare, unless it is nil, and creates child
// as fieldOwner or, if that is empty, as the client's own field owner; an error of prepare is
// returned, and nothing is created. reconcile.Once writes with it.
func (c *Client) EnsureChild(ctx context.Context, child kube.Object, fieldOwner string, prepare func(context.Context) error) (created bool, err error) {
	if isNil(child) {
		return false, errors.New("ensure child: it is nil")
	}
	key := kube.KeyOf(child)
	if err := c.Get(ctx, key, child); !apierrors.IsNotFound(err) {
		return false, err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return false, err
		}
	}
	var opts []Option
	if fieldOwner != "" {
		opts = append(opts, FieldOwner(fieldOwner))
	}
	err = c.Create(ctx, child, opts...)
	if apierrors.IsAlreadyExists(err) { // since the read
		return false, c.Get(ctx, key, child)
	}
	return err == nil, err
}

// DeleteToRecreate deletes is, the object on the server, an apply of child to which the server has
// refused, if that still has its UID and resourceVersion, with the propagation. Before, it asks
// the server by the dry run of a creation whether it would accept child as a new object; if not,
// it returns that error and deletes nothing. reconcile.Recreate deletes with it.
func (c *Client) DeleteToRecreate(ctx context.Context, child, is kube.Object, propagation metav1.DeletionPropagation) error {
	if isNil(child) || isNil(is) || is.GetUID() == "" || is.GetResourceVersion() == "" {
		return errors.New("delete a child to recreate it: an object is nil, or that on the server has no uid or resourceVersion; pass one that was read")
	}
	at := &call{}
	tree, _, err := at.configuration(c, child)
	if err != nil {
		return fmt.Errorf("delete a child to recreate it: %w", err)
	}
	err = c.Create(ctx, &unstructured.Unstructured{Object: tree}, DryRun{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	old := &metav1.PartialObjectMetadata{}
	old.SetGroupVersionKind(at.kind)
	old.SetNamespace(at.key.Namespace)
	old.SetName(at.key.Name)
	return c.Delete(ctx, old, Propagation(propagation), Preconditions{UID: is.GetUID(), ResourceVersion: is.GetResourceVersion()})
}

// ChildOwner returns the client's own field owner; empty: none.
func (c *Client) ChildOwner() string {
	own, err := c.collect(verbApply, nil)
	if err != nil {
		return "" // each call returns the error
	}
	return own.fieldOwner
}

// DeleteChild deletes child if the object on the server still has child's UID and
// resourceVersion; if it has changed, the error is a *ConflictError. Dependents of the
// child are deleted in the background. child is not modified, so it may come from a
// Lister.
func (c *Client) DeleteChild(ctx context.Context, child kube.Object) error {
	if isNil(child) || child.GetUID() == "" || child.GetResourceVersion() == "" {
		return errors.New("delete child: it has no uid or resourceVersion; pass one that was read from the server")
	}
	return c.Delete(ctx, child, Propagation("Background"), Preconditions{UID: child.GetUID(), ResourceVersion: child.GetResourceVersion()})
}
