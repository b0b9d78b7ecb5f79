// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
)

// Delete requests the deletion of the object that obj names. obj is not modified, so it
// may come from a Lister. Delete returns when the server has accepted the request; an
// object with finalizers or a grace period still exists then. If the object does not
// exist, apierrors.IsNotFound holds for the error. To delete exactly this object and no
// other with the same name, pass Preconditions{UID: obj.GetUID()}.
func (c *Client) Delete(ctx context.Context, obj informer.Object, opts ...Option) error {
	at, err := c.aim(ctx, verbDelete, "", obj, opts)
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
		c.observe(at, afterDelete(at, a, like))
	}
	return nil
}

// afterDelete derives the effect of a delete from its answer. like is an empty object
// that can hold it.
func afterDelete(at *call, a answer, like informer.Object) informer.Written {
	switch {
	case a.kind == statusKind:
		var status metav1.Status
		if err := a.decode(&status); err != nil {
			return touched(at)
		}
		return deletedByStatus(at, &status)
	case len(a.data) == 0 || !a.is(at.kind):
		return touched(at)
	}
	if err := a.into(like, at.kind); err != nil {
		return touched(at)
	}
	return deleted(at.kind, like)
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
func DeleteAllOf[T informer.Object](ctx context.Context, c *Client, opts ...Option) error {
	like, at, err := aimAtAll[T](ctx, c, verbDeleteAllOf, opts)
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
		for _, w := range afterDeleteAllOf(at, a, whole) {
			c.observe(at, w)
		}
	}
	return nil
}

// afterDeleteAllOf derives the effects of a deletion of a collection from its answer: a
// list of the objects as they were before. None can be Stored, and one is Removed only
// if nothing can have kept it.
func afterDeleteAllOf(at *call, a answer, like informer.Object) []informer.Written {
	if a.kind == statusKind || len(a.data) == 0 {
		return nil
	}
	page, err := a.page()
	if err != nil {
		return nil
	}
	all := make([]informer.Written, 0, len(page.items))
	for _, item := range page.items {
		obj := empty(like)
		if err := item.into(obj, at.kind); err != nil {
			continue
		}
		w := written(informer.Touched, at.kind, obj)
		w.Version = 0 // the version before the deletion is of no use
		if !lingers(obj) && goesAtOnce(at) {
			w.Effect = informer.Removed
		}
		all = append(all, w)
	}
	return all
}

// goesAtOnce reports whether the deletion of an object without finalizers is complete
// when it is answered. It is not if the request adds a finalizer (foreground, orphan),
// if the kind does so by default, or for pods, which have a grace period.
func goesAtOnce(at *call) bool {
	if at.propagation == metav1.DeletePropagationForeground || at.propagation == metav1.DeletePropagationOrphan {
		return false
	}
	switch at.kind.GroupKind().String() {
	case "Pod":
		return at.gracePeriod != nil && *at.gracePeriod == 0
	case "Job.batch", "ReplicationController":
		return at.propagation == metav1.DeletePropagationBackground
	}
	return true
}
