// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// ReadChild reads the metadata of the object that has child's kind, namespace and name
// from the API server. For the error apierrors.IsNotFound holds if there is none. child
// is read and never written.
func (c *Client) ReadChild(ctx context.Context, child informer.Object) (informer.Object, error) {
	if isNil(child) {
		return nil, errors.New("read child: it is nil")
	}
	kind, err := c.KindOf(child)
	if err != nil {
		return nil, fmt.Errorf("read child: %w", err)
	}
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(kind)
	return is, c.Get(ctx, informer.KeyOf(child), is)
}

// ApplyChild is Apply as fieldOwner, or as the client's own if that is empty, with
// Force: what a reconcile.ChildSet writes with.
func (c *Client) ApplyChild(ctx context.Context, child informer.Object, fieldOwner string) error {
	opts := []Option{Force{}}
	if fieldOwner != "" {
		opts = append(opts, FieldOwner(fieldOwner))
	}
	return c.Apply(ctx, child, opts...)
}

// DeleteChild deletes child, provided that the object on the server is still the
// one of child's UID and resourceVersion; if it has changed, the error is a
// *ConflictError. What the deleted child owns is deleted in the background. child is
// read and never written, so one from a Lister will do.
func (c *Client) DeleteChild(ctx context.Context, child informer.Object) error {
	if isNil(child) || child.GetUID() == "" || child.GetResourceVersion() == "" {
		return errors.New("delete child: it has no uid or resourceVersion; pass one that was read from the server")
	}
	return c.Delete(ctx, child, Propagation("Background"), Preconditions{UID: child.GetUID(), ResourceVersion: child.GetResourceVersion()})
}
