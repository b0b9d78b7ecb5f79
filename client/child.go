// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"github.com/flyball-dev/flyball/informer"
)

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
