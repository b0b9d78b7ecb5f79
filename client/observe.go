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

// changed returns the effect of a create, update, patch or apply that was answered with
// obj, an object of the kind that was written.
func changed(kind schema.GroupVersionKind, obj informer.Object) informer.Written {
	// A write that removes the last finalizer of a deleted object is answered with the
	// object as it was when it was removed.
	if obj.GetDeletionTimestamp() != nil && !lingers(obj) {
		return written(informer.Removed, kind, obj)
	}
	return written(informer.Stored, kind, obj)
}

// deleted returns the effect of a delete that was answered with obj. Only finalizers
// and the grace period show whether the object is gone: the server answers some
// deletions with the object as it was before.
func deleted(kind schema.GroupVersionKind, obj informer.Object) informer.Written {
	if lingers(obj) {
		return written(informer.Stored, kind, obj)
	}
	return written(informer.Removed, kind, obj)
}

// deletedByStatus returns the effect of a delete that was answered with a Status. No
// object has the name any more, and the UID that the caller knew is gone too: if
// another object had taken the name, that UID was gone before.
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

// touched returns the effect of a write whose answer does not show the object's new
// state.
func touched(at *call) informer.Written {
	return informer.Written{Kind: at.kind, Effect: informer.Touched, Key: at.key, UID: at.uid}
}

// lingers reports whether a deleted object still exists: it has finalizers, or a grace
// period that has not been cut to zero.
func lingers(obj informer.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return len(obj.GetFinalizers()) > 0 || (grace != nil && *grace > 0) || namespaceFinalizers(obj) > 0
}

// namespaceFinalizers counts the finalizers in spec of a Namespace, which come in
// addition to those in metadata.
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

// touchedBy returns the effect of a write to a subresource that was answered with an
// object of another kind, such as a Scale, which carries the version and UID of the
// main object. Fields that cannot be read stay unknown.
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
