// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

var (
	statusKind   = schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	metadataKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	namespaces   = schema.GroupKind{Kind: "Namespace"}
)

// Verb of a Write.
type Verb uint8

const (
	// Change is a create, update, patch or apply.
	Change Verb = iota
	// Delete is the deletion of one object.
	Delete
	// DeleteAll is the deletion of a collection.
	DeleteAll
)

// Write is a write request, as far as it determines what its answer means.
type Write struct {
	Verb        Verb
	Subresource string // empty: the object itself
	Kind        schema.GroupVersionKind
	// Key of the object. Of a deletion of a collection, and of a create whose name the
	// server chooses: its namespace.
	Key kube.Key
	// UID that the caller knows or requires; may be empty.
	UID types.UID
	// Propagation and GracePeriod of a deletion; nil and empty: the kind's default.
	Propagation metav1.DeletionPropagation
	GracePeriod *int64
}

// Effects returns the effects of a write that was answered with a. empty returns an empty
// object that can hold the answer, or an item of it.
func (w Write) Effects(a Answer, empty func() kube.Object) []kube.Written {
	switch {
	case w.Verb == DeleteAll:
		return w.DeletedAll(a, empty())
	case w.Verb == Delete && w.Subresource == "":
		return []kube.Written{w.Deleted(a, empty())}
	}
	return []kube.Written{w.changedBy(a, empty)}
}

func (w Write) changedBy(a Answer, empty func() kube.Object) kube.Written {
	var obj kube.Object
	switch a.Kind {
	case w.Kind:
		obj = empty()
	case metadataKind:
		obj = &metav1.PartialObjectMetadata{}
	default:
		return w.TouchedBy(a)
	}
	if err := a.Into(obj, w.Kind); err != nil {
		return w.Touched()
	}
	if key := kube.KeyOf(obj); key.Name == "" || key.Namespace != w.Key.Namespace || w.Key.Name != "" && key.Name != w.Key.Name {
		return w.Touched()
	}
	return Changed(w.Kind, obj, a)
}

// Changed returns the effect of a create, update, patch or apply that was answered with
// a, decoded as obj: an object of the kind that was written or the metadata of one. An
// informer of whole objects treats Stored metadata as Touched.
func Changed(kind schema.GroupVersionKind, obj kube.Object, a Answer) kube.Written {
	// A write that removes the last finalizer of a deleted object is answered with the
	// object as it was when it was removed.
	switch _, partial := obj.(*metav1.PartialObjectMetadata); {
	case obj.GetDeletionTimestamp() == nil || outlivesDeletion(obj):
		return stored(kind, obj, a)
	case partial && kind.GroupKind() == namespaces: // its spec may have finalizers
		return written(kube.Touched, kind, obj)
	}
	return written(kube.Removed, kind, obj)
}

// Touched returns the effect of a write whose answer does not show the object's new
// state.
func (w Write) Touched() kube.Written {
	return kube.Written{Kind: w.Kind, Effect: kube.Touched, Key: w.Key, UID: w.UID}
}

// TouchedBy returns the effect of a write to a subresource that was answered with an
// object of another kind, such as a Scale, which carries the version and UID of the
// main object. Fields that cannot be read stay unknown.
func (w Write) TouchedBy(a Answer) kube.Written {
	touched := w.Touched()
	var body metav1.PartialObjectMetadata
	if a.Kind == statusKind || len(a.Data) == 0 || a.Decode(&body) != nil {
		return touched
	}
	if body.UID == "" || (w.UID != "" && w.UID != body.UID) {
		return touched
	}
	touched.UID, touched.Version = body.UID, kube.ParseVersion(body.ResourceVersion)
	return touched
}

// Deleted returns the effect of a deletion. like is an empty object that can hold the
// answer, and is decoded into.
func (w Write) Deleted(a Answer, like kube.Object) kube.Written {
	switch {
	case a.Kind == statusKind:
		var status metav1.Status
		if err := a.Decode(&status); err != nil {
			return w.Touched()
		}
		return w.deletedByStatus(&status)
	case len(a.Data) == 0 || !a.Is(w.Kind):
		return w.Touched()
	}
	if err := a.Into(like, w.Kind); err != nil {
		return w.Touched()
	}
	return deleted(w.Kind, like, a)
}

// deleted returns the effect of a deletion that was answered with obj. Only finalizers
// and the grace period show whether the object is gone: the server answers some
// deletions with the object as it was before.
func deleted(kind schema.GroupVersionKind, obj kube.Object, a Answer) kube.Written {
	if outlivesDeletion(obj) {
		return stored(kind, obj, a)
	}
	return written(kube.Removed, kind, obj)
}

// deletedByStatus returns the effect of a deletion that was answered with a Status. No
// object has the name any more, and the UID that the caller knew is gone too: if
// another object had taken the name, that UID was gone before.
func (w Write) deletedByStatus(status *metav1.Status) kube.Written {
	uid := w.UID
	if status.Details != nil && status.Details.UID != "" {
		uid = status.Details.UID
	}
	if uid == "" {
		return w.Touched()
	}
	return kube.Written{Kind: w.Kind, Effect: kube.Removed, Key: w.Key, UID: uid}
}

// DeletedAll returns the effects of a deletion of a collection from its answer: a list
// of the objects as they were before. None can be Stored, and one is Removed only if
// nothing can have kept it. An answer that does not list them leaves the namespace
// Touched. like is an object that can hold an item.
func (w Write) DeletedAll(a Answer, like kube.Object) []kube.Written {
	if a.Kind == statusKind || len(a.Data) == 0 {
		return []kube.Written{w.Touched()}
	}
	page, err := a.Page()
	if err != nil {
		return []kube.Written{w.Touched()}
	}
	all := make([]kube.Written, 0, len(page.Items))
	for _, item := range page.Items {
		obj := reflect.New(reflect.TypeOf(like).Elem()).Interface().(kube.Object)
		if err := item.Into(obj, w.Kind); err != nil {
			return []kube.Written{w.Touched()}
		}
		one := written(kube.Touched, w.Kind, obj)
		one.Version = 0 // the version before the deletion is of no use
		if !outlivesDeletion(obj) && w.goesAtOnce() {
			one.Effect = kube.Removed
		}
		all = append(all, one)
	}
	return all
}

// goesAtOnce reports whether the deletion of an object without finalizers is complete
// when it is answered. It is not if the request adds a finalizer (foreground, orphan),
// if the kind does so by default, or for pods, which have a grace period.
func (w Write) goesAtOnce() bool {
	if w.Propagation == metav1.DeletePropagationForeground || w.Propagation == metav1.DeletePropagationOrphan {
		return false
	}
	switch w.Kind.GroupKind().String() {
	case "Pod":
		return w.GracePeriod != nil && *w.GracePeriod == 0
	case "Job.batch", "ReplicationController":
		return w.Propagation == metav1.DeletePropagationBackground
	}
	return true
}

// outlivesDeletion reports whether a deleted object still exists: it has finalizers, or a grace
// period that has not been cut to zero.
func outlivesDeletion(obj kube.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return len(obj.GetFinalizers()) > 0 || (grace != nil && *grace > 0) || namespaceFinalizers(obj) > 0
}

// namespaceFinalizers counts the finalizers in spec of a Namespace, which come in
// addition to those in metadata.
func namespaceFinalizers(obj kube.Object) int {
	switch o := obj.(type) {
	case *corev1.Namespace:
		return len(o.Spec.Finalizers)
	case *unstructured.Unstructured:
		if o.GroupVersionKind().GroupKind() == namespaces {
			finalizers, _, _ := unstructured.NestedSlice(o.Object, "spec", "finalizers")
			return len(finalizers)
		}
	}
	return 0
}

func written(effect kube.WriteEffect, kind schema.GroupVersionKind, obj kube.Object) kube.Written {
	w := kube.Written{
		Kind:    kind,
		Effect:  effect,
		Key:     kube.KeyOf(obj),
		UID:     obj.GetUID(),
		Version: kube.ParseVersion(obj.GetResourceVersion()),
	}
	return w
}

// stored returns the effect of a write that was answered with a, decoded as obj.
func stored(kind schema.GroupVersionKind, obj kube.Object, a Answer) kube.Written {
	w := written(kube.Stored, kind, obj)
	w.Object = obj
	w.Decode = func(into kube.Object) error { return a.Into(into, kind) }
	return w
}
