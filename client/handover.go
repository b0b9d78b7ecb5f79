// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/flyball-dev/flyball/internal/applied"
)

// handOverTries is how many times a hand-over is tried while others change the object.
const handOverTries = 5

// handOver hands the fields of an object over to the field owner of an apply, unless that was
// done before.
func handOver(ctx context.Context, c *Client, at *call, key applied.Key) error {
	if len(at.handOver) == 0 || at.dryRun || c.handed.Has(key, true) {
		return nil
	}
	for tries := 1; ; tries++ {
		done, err := handOverOnce(ctx, c, at)
		if apierrors.IsConflict(err) && tries < handOverTries {
			continue
		}
		if done {
			c.handed.Put(key, true)
		}
		return err
	}
}

// handOverOnce reports whether the object exists, and nothing is left to hand over.
func handOverOnce(ctx context.Context, c *Client, at *call) (done bool, err error) {
	is, err := metadataOf(ctx, c, at.kind, at.key)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // the apply creates it
	case err != nil:
		return false, err
	}
	fields := is.GetManagedFields()
	for i := range fields {
		if fields[i].FieldsV1 == nil {
			fields[i].FieldsV1 = &metav1.FieldsV1{}
			fields[i].FieldsV1.SetRawBytes([]byte("{}"))
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(is, sets.New(at.handOver...), at.fieldOwner, csaupgrade.Subresource(at.sub))
	if err != nil || patch == nil {
		return err == nil, err
	}
	write, err := c.newCall(ctx, verbPatch, "", is, []Option{FieldOwner(at.fieldOwner)})
	if err != nil {
		return false, err
	}
	write.version = is.GetResourceVersion() // which the patch names
	like := c.whole(empty(is), at.kind)
	a, err := c.write(ctx, write, http.MethodPatch, string(types.JSONPatchType), c.accept(like), patch)
	if err != nil {
		return false, err
	}
	return true, c.readAnswer(write, a, like)
}
