// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// SetFinalizers replaces the list of obj's finalizers, if the object on the server
// still has obj's UID and resourceVersion; if it has changed, the error is a
// *ConflictError. obj is not modified, so it may come from a Lister.
func (c *Client) SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error {
	at, err := c.newCall(ctx, verbPatch, "", obj, nil)
	if err != nil {
		return err
	}
	if obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return at.wrap(errors.New("set finalizers: the object has no uid or resourceVersion; pass one that was read from the server"))
	}
	at.preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	if finalizers == nil {
		finalizers = []string{}
	}
	change := map[string]any{"metadata": map[string]any{"finalizers": finalizers}}
	a, err := c.sendPatch(ctx, at, obj, Patch{kind: types.MergePatchType, data: MergePatch(change).data})
	if err != nil {
		return err
	}
	return c.readAnswer(at, a, c.whole(obj, at.kind))
}
