// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// touchedBy is a write to a subresource that was answered with an object of
// another kind, as a Scale: it carries the version and UID of the object
// itself. What cannot be read of it stays unknown.
func touchedBy(at *call, a answer) informer.Written {
	w := touched(at)
	var body metav1.PartialObjectMetadata
	if a.kind == statusKind || len(a.data) == 0 || a.decode(&body) != nil {
		return w
	}
	if body.UID == "" || (w.UID != "" && w.UID != body.UID) {
		return w
	}
	w.UID, w.Version = body.UID, informer.ParseVersion(body.ResourceVersion)
	return w
}
