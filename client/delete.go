// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/kube"
)

// Delete requests the deletion of the object that obj names. obj is not modified, so it
// may come from a Lister. Delete returns when the server has accepted the request; an
// object with finalizers or a grace period still exists then. If the object does not
// exist, apierrors.IsNotFound holds for the error. To delete exactly this object and no
// other with the same name, pass Preconditions{UID: obj.GetUID()}.
func (c *Client) Delete(ctx context.Context, obj kube.Object, opts ...Option) error {
	at, err := c.newCall(ctx, verbDelete, "", obj, opts)
	if err != nil {
		return err
	}
	at.version = at.preconditions.ResourceVersion
	body, err := deleteBody(at)
	if err != nil {
		return at.wrap(err)
	}
	// The answer must be the whole object, even if the caller has only its metadata.
	like := c.whole(obj, at.kind)
	a, err := c.write(ctx, at, http.MethodDelete, runtime.ContentTypeJSON, c.accept(like), body)
	if err != nil {
		return err
	}
	if c.watched(at) {
		c.observe(at, at.effect().Deleted(a, like))
	}
	return nil
}

func deleteBody(at *call) ([]byte, error) { return json.Marshal(deleteOptions(at)) }

func deleteOptions(at *call) metav1.DeleteOptions {
	options := metav1.DeleteOptions{
		TypeMeta:           metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		GracePeriodSeconds: at.gracePeriod,
	}
	if at.propagation != "" {
		options.PropagationPolicy = &at.propagation
	}
	if p := at.preconditions; p != (Preconditions{}) {
		options.Preconditions = &metav1.Preconditions{}
		if p.UID != "" {
			options.Preconditions.UID = &p.UID
		}
		if p.ResourceVersion != "" {
			options.Preconditions.ResourceVersion = &p.ResourceVersion
		}
	}
	if at.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// DeleteAllOf requests the deletion of all objects of T's kind that the options select,
// in one request. A namespaced kind requires InNamespace. For
// *unstructured.Unstructured and *metav1.PartialObjectMetadata pass the kind with
// OfKind.
func DeleteAllOf[T kube.Object](ctx context.Context, c *Client, opts ...Option) error {
	like, at, err := newCallOnAll[T](ctx, c, verbDeleteAllOf, opts)
	if err != nil {
		return err
	}
	body, err := deleteBody(at)
	if err != nil {
		return at.wrap(err)
	}
	req, err := c.request(at, http.MethodDelete)
	if err != nil {
		return at.wrap(err)
	}
	whole := c.whole(like, at.kind)
	req = selectParams(req, at).SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", c.accept(whole)).Body(body)
	a, err := c.do(ctx, at, req)
	if err != nil {
		return err
	}
	if c.watched(at) {
		for _, w := range at.effect().DeletedAll(a, whole) {
			c.observe(at, w)
		}
	}
	return nil
}
