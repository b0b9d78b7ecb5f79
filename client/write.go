// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"github.com/flyball-dev/flyball/informer"
)

// Create writes a new object. obj becomes what the server stored, with its
// name if metadata.generateName asked for one; on an error it is left as it
// was.
func (c *Client) Create(ctx context.Context, obj informer.Object, opts ...Option) error {
	return c.put(ctx, verbCreate, "", http.MethodPost, obj, opts)
}

// Update replaces the object with obj, which becomes what the server stored;
// on an error it is left as it was. obj carries its resourceVersion: if the
// object has changed since, the error is a *ConflictError. Where obj may be
// shared, as one from a Lister, update a copy.
func (c *Client) Update(ctx context.Context, obj informer.Object, opts ...Option) error {
	return c.put(ctx, verbUpdate, "", http.MethodPut, obj, opts)
}

// put sends obj whole.
func (c *Client) put(ctx context.Context, v verb, sub, method string, obj informer.Object, opts []Option) error {
	at, err := c.aim(ctx, v, sub, obj, opts)
	if err != nil {
		return err
	}
	if v == verbUpdate {
		at.version = obj.GetResourceVersion()
	}
	body, contentType, err := encode(obj, at.kind, c.protobuf(obj))
	if err != nil {
		return at.wrap(err)
	}
	a, err := c.write(ctx, at, method, contentType, c.accept(obj), body)
	if err != nil {
		return err
	}
	return c.settled(at, a, obj)
}
