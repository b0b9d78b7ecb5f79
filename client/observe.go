// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

// changed is what a create, update, patch or apply did that was answered with
// obj, an object of the kind that was written.
func changed(kind schema.GroupVersionKind, obj informer.Object) informer.Written {
	// Who removes the last finalizer of a deleted object gets the object back,
	// as it was when it went.
	if obj.GetDeletionTimestamp() != nil && !lingers(obj) {
		return written(informer.Removed, kind, obj)
	}
	return written(informer.Stored, kind, obj)
}

// deleted is what a delete did that was answered with obj. Nothing else in obj
// can be trusted to say whether it is gone: the server answers some deletions
// with the object as it was while it lived.
func deleted(kind schema.GroupVersionKind, obj informer.Object) informer.Written {
	if lingers(obj) {
		return written(informer.Stored, kind, obj)
	}
	return written(informer.Removed, kind, obj)
}

// deletedByStatus is what a delete did that was answered with a Status. The
// name is gone, and so is whatever UID the caller knew under it: if another
// object had taken the name, the UID was gone before.
func deletedByStatus(at *call, status *metav1.Status) informer.Written {
	uid := at.uid
	if at.preconditions.UID != "" {
		uid = at.preconditions.UID
	}
	if status.Details != nil && status.Details.UID != "" {
		uid = status.Details.UID
	}
	if uid == "" {
		return touched(at)
	}
	return informer.Written{Kind: at.kind, Effect: informer.Removed, Key: at.key, UID: uid}
}

// touched is a write whose answer does not tell what the object is now.
func touched(at *call) informer.Written {
	return informer.Written{Kind: at.kind, Effect: informer.Touched, Key: at.key, UID: at.uid}
}

// lingers says whether a deleted object stays for now: it has finalizers, or a
// grace period that has not been cut to zero.
func lingers(obj informer.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return len(obj.GetFinalizers()) > 0 || (grace != nil && *grace > 0) || namespaceFinalizers(obj) > 0
}

// namespaceFinalizers counts the finalizers of a Namespace, which has its own
// in spec beside those in metadata.
func namespaceFinalizers(obj informer.Object) int {
	switch o := obj.(type) {
	case *corev1.Namespace:
		return len(o.Spec.Finalizers)
	case *unstructured.Unstructured:
		if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			finalizers, _, _ := unstructured.NestedSlice(o.Object, "spec", "finalizers")
			return len(finalizers)
		}
	}
	return 0
}

func written(effect informer.WriteEffect, kind schema.GroupVersionKind, obj informer.Object) informer.Written {
	w := informer.Written{
		Kind:    kind,
		Effect:  effect,
		Key:     informer.KeyOf(obj),
		UID:     obj.GetUID(),
		Version: informer.ParseVersion(obj.GetResourceVersion()),
	}
	if effect == informer.Stored {
		w.Object = obj
	}
	return w
}

// watched says whether anybody is to be told of the call's effect.
func (c *Client) watched(at *call) bool {
	return c.opts.Observer != nil && !at.dryRun
}

// observe tells the Observer. The object becomes its own: callers pass one that
// nobody else holds.
func (c *Client) observe(at *call, w informer.Written) {
	if c.watched(at) && w.Key.Name != "" {
		c.opts.Observer.Observe(w)
	}
}

// settled deals with the answer to a write of obj itself: the caller's object
// becomes the answer, the Observer gets a copy of its own. obj is nil where the
// caller has no object to fill.
func (c *Client) settled(at *call, a answer, obj informer.Object) error {
	want := at.kind
	if !isNil(obj) && metadataOnly(obj) {
		want = metadataKind
	}
	if !a.is(want) {
		c.observe(at, touched(at))
		return nil
	}
	if isNil(obj) && !c.watched(at) {
		return nil
	}
	var got informer.Object
	if isNil(obj) {
		got = c.whole(nil, at.kind)
	} else {
		got = empty(obj)
	}
	if err := a.into(got, at.kind); err != nil {
		c.observe(at, touched(at))
		return at.wrap(err)
	}
	if c.watched(at) {
		c.observe(at, c.effect(at, got, !isNil(obj)))
	}
	if !isNil(obj) {
		fill(obj, got)
	}
	return nil
}

// effect of a write answered with got; shared says that the caller will have
// got as well.
func (c *Client) effect(at *call, got informer.Object, shared bool) informer.Written {
	if metadataOnly(got) {
		w := touched(at)
		w.UID, w.Version = got.GetUID(), informer.ParseVersion(got.GetResourceVersion())
		return w
	}
	w := changed(at.kind, got)
	if shared && w.Object != nil {
		w.Object = informer.Copy(w.Object)
	}
	return w
}

// touchedBy is a write to a subresource answered with an object of another
// kind, which carries the version and UID of the object itself, as a Scale.
func touchedBy(at *call, body metav1.Object) informer.Written {
	w := touched(at)
	if body.GetUID() == "" || (w.UID != "" && w.UID != body.GetUID()) {
		return w
	}
	w.UID = types.UID(body.GetUID())
	w.Version = informer.ParseVersion(body.GetResourceVersion())
	return w
}
