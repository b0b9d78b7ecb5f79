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
// object has changed since, the error is a *ConflictError. An obj from a Lister
// is shared, and a *SharedObjectError: update an informer.Copy of it.
func (c *Client) Update(ctx context.Context, obj informer.Object, opts ...Option) error {
	return c.put(ctx, verbUpdate, "", http.MethodPut, obj, opts)
}

// put sends obj whole.
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

// settled deals with the answer to a write of the object itself: obj becomes
// the answer, and the Observer gets a copy that nobody else holds. obj is nil
// where the caller has no object to fill.
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

// watched says whether anybody is to be told what the call did.
func (c *Client) watched(at *call) bool {
	return c.opts.Observer != nil && !at.dryRun
}

// observe tells the Observer, whose the object becomes. What has no name, as
// the review of an access, is no object that anybody holds.
func (c *Client) observe(at *call, w informer.Written) {
	if c.watched(at) && w.Key.Name != "" {
		c.opts.Observer.Observe(w)
	}
}
