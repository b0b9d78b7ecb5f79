// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"github.com/flyball-dev/flyball/informer"
)

// Create writes a new object. obj is set to the stored object, including the name if
// metadata.generateName was used; on an error it is unchanged.
func (c *Client) Create(ctx context.Context, obj informer.Object, opts ...Option) error {
	return c.put(ctx, verbCreate, "", http.MethodPost, obj, opts)
}

// Update replaces the object with obj, and sets obj to the stored object; on an error
// obj is unchanged. obj must carry its resourceVersion: if the object has changed
// since, the error is a *ConflictError. An obj from a Lister is shared, and the error
// is a *SharedObjectError: update an informer.Copy of it.
func (c *Client) Update(ctx context.Context, obj informer.Object, opts ...Option) error {
	return c.put(ctx, verbUpdate, "", http.MethodPut, obj, opts)
}

func (c *Client) put(ctx context.Context, v verb, sub, method string, obj informer.Object, opts []Option) error {
	at, err := c.aim(ctx, v, sub, obj, opts)
	if err != nil {
		return err
	}
	if err := c.private(at, obj); err != nil {
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

// settled handles the answer to a write of the object itself: it stores the answer in
// obj, and passes the Observer a copy that is not shared. obj is nil if the caller has
// no object to fill.
func (c *Client) settled(at *call, a answer, obj informer.Object) error {
	want := at.kind
	if !isNil(obj) && metadataOnly(obj) {
		want = metadataKind
	}
	switch {
	case !a.is(want):
		c.observe(at, touchedBy(at, a))
		return nil
	case isNil(obj) && !c.watched(at):
		return nil
	case isNil(obj):
		obj = c.whole(nil, at.kind)
	}
	got := empty(obj)
	if err := a.into(got, at.kind); err != nil {
		c.observe(at, touched(at))
		return at.wrap(err)
	}
	if c.watched(at) {
		if metadataOnly(got) {
			c.observe(at, written(informer.Touched, at.kind, got))
		} else {
			c.observe(at, changed(at.kind, informer.Copy(got)))
		}
	}
	fill(obj, got)
	return nil
}

// watched reports whether the Observer receives the effect of the call.
func (c *Client) watched(at *call) bool {
	return c.opts.Observer != nil && !at.dryRun
}

// observe passes the effect to the Observer, which then owns the object. An answer
// without a name, such as an access review, is not an object of any cache.
func (c *Client) observe(at *call, w informer.Written) {
	if c.watched(at) && w.Key.Name != "" {
		c.opts.Observer.Observe(w)
	}
}
