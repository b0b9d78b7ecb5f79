// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
)

// Outcome of a write that may not have been needed.
type Outcome string

// What CreateOrUpdate has done.
const (
	Unchanged Outcome = "unchanged"
	Created   Outcome = "created"
	Updated   Outcome = "updated"
)

// CreateOrUpdate reads the object that obj names from the server, has mutate
// change it, and writes what mutate has changed: by Create if it was not there,
// else by PatchChanges, which sends nothing when nothing has changed. It is for
// changes that depend on what is there, and for code that comes from
// controller-runtime. Where mutate only says what is wanted, Apply does the same
// in one request and no read: set the fields on an empty object and apply it.
//
// mutate finds in obj what is there, or obj as it was passed, and changes obj; it
// must not change its name. obj becomes what the server stored; on an error it is
// as it was. Who creates or changes the object in between wins: that is an error
// for which apierrors.IsAlreadyExists or, where lists are changed, IsConflict
// holds, and the next reconcile decides anew. A new object gets its status, where
// the kind has the subresource, with the next call. opts fit create and patch.
func (c *Client) CreateOrUpdate(ctx context.Context, obj informer.Object, mutate func() error, opts ...Option) (Outcome, error) {
	at, err := c.aim(ctx, verbPatch, "", obj, opts)
	if err != nil {
		return Unchanged, err
	}
	if err := c.private(at, obj); err != nil {
		return Unchanged, err
	}
	if mutate == nil {
		return Unchanged, at.wrap(errors.New("create or update: the function is nil; use Apply"))
	}
	before := shallow(obj)
	outcome, err := c.createOrUpdate(ctx, at, obj, mutate, opts)
	if err != nil {
		fill(obj, before)
		return Unchanged, err
	}
	return outcome, nil
}

func (c *Client) createOrUpdate(ctx context.Context, at *call, obj informer.Object, mutate func() error, opts []Option) (Outcome, error) {
	fill(obj, informer.Copy(obj)) // mutate must not reach what the caller's maps hold
	live := empty(obj)
	live.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err := c.Get(ctx, at.key, live)
	if err != nil && !apierrors.IsNotFound(err) {
		return Unchanged, err
	}
	missing := err != nil
	if !missing {
		fill(obj, informer.Copy(live))
	}
	named := informer.KeyOf(obj)
	if err := mutate(); err != nil {
		return Unchanged, at.wrap(fmt.Errorf("mutate: %w", err))
	}
	if informer.KeyOf(obj) != named {
		return Unchanged, at.wrap(fmt.Errorf("mutate changed the name to %s", informer.KeyOf(obj)))
	}
	if missing {
		return Created, c.Create(ctx, obj, opts...)
	}
	changed, err := c.PatchChanges(ctx, live, obj, opts...)
	if !changed {
		return Unchanged, err
	}
	return Updated, err
}
