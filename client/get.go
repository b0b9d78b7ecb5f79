// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/flyball-dev/flyball/kube"
)

// Get reads the object that key names from the API server, not from a cache, and stores
// it in into. It blocks until the server has answered or ctx ends. If the object does
// not exist, apierrors.IsNotFound holds for the error; if the kind is not served, the
// error is a *kube.NotServedError.
//
// For an *unstructured.Unstructured or *metav1.PartialObjectMetadata set apiVersion and
// kind before the call.
func (c *Client) Get(ctx context.Context, key kube.Key, into kube.Object, opts ...Option) error {
	at, err := c.newCallAt(ctx, verbGet, "", key, into, opts)
	if err != nil {
		return err
	}
	if err := c.private(at, into); err != nil {
		return err
	}
	req, err := c.request(at, http.MethodGet)
	if err != nil {
		return at.wrap(err)
	}
	a, err := c.do(ctx, at, req.SetHeader("Accept", c.accept(into)))
	if err != nil {
		return err
	}
	want := at.kind
	if metadataOnly(into) {
		want = metadataKind
	}
	if !a.Is(want) {
		return at.wrap(fmt.Errorf("the server answered with a %s", a.Kind))
	}
	got := empty(into)
	if err := a.Into(got, at.kind); err != nil {
		return at.wrap(err)
	}
	fill(into, got)
	return nil
}
