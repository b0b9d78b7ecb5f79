// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/kube"
)

// Outcome is the result of CreateOrUpdate.
type Outcome string

// The outcomes of CreateOrUpdate.
const (
	Unchanged Outcome = "unchanged"
	Created   Outcome = "created"
	Updated   Outcome = "updated"
)

// CreateOrUpdate reads the object that obj names from the server, calls mutate to
// change it, and writes the changes: with Create if the object does not exist, else
// with PatchChanges, which sends nothing if nothing has changed. Use it for changes
// that depend on the current state, and for code ported from controller-runtime. If
// mutate only sets the desired state, Apply does the same in one request without a
// read: set the fields on an empty object and apply it.
//
// When mutate runs, obj holds the current object, or is unchanged if there is none.
// mutate must not change its name. obj is set to the stored object; on an error it is
// unchanged. If another client creates or changes the object in between, the error is
// one for which apierrors.IsAlreadyExists or, if lists are changed, IsConflict holds,
// and the next reconcile decides again. The status of a new object, if the kind has the
// subresource, is written by the next call. opts must fit both create and patch.
func (c *Client) CreateOrUpdate(ctx context.Context, obj kube.Object, mutate func() error, opts ...Option) (Outcome, error) {
	at, err := c.newCall(ctx, verbPatch, "", obj, opts)
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

func (c *Client) createOrUpdate(ctx context.Context, at *call, obj kube.Object, mutate func() error, opts []Option) (Outcome, error) {
	fill(obj, kube.Copy(obj)) // mutate must not change the caller's maps
	live := empty(obj)
	live.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err := c.Get(ctx, at.key, live)
	if err != nil && !apierrors.IsNotFound(err) {
		return Unchanged, err
	}
	missing := err != nil
	if !missing {
		fill(obj, kube.Copy(live))
	}
	named := kube.KeyOf(obj)
	if err := mutate(); err != nil {
		return Unchanged, at.wrap(fmt.Errorf("mutate: %w", err))
	}
	if kube.KeyOf(obj) != named {
		return Unchanged, at.wrap(fmt.Errorf("mutate changed the name to %s", kube.KeyOf(obj)))
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
