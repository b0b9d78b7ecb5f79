// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package write

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// deletionStore is where objects are kept. The caller holds its lock.
type deletionStore interface {
	// Put stores an object at the next revision.
	Put(r schema.GroupResource, obj *object.Object) *object.Object
	// Remove removes an object at the next revision, and returns its last state.
	Remove(r schema.GroupResource, key types.NamespacedName) *object.Object
}

// Delete deletes old, which is stored. It returns the object as the answer shows it, and
// whether it was removed rather than marked. A dry run changes nothing.
func Delete(store deletionStore, kind *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) (obj *object.Object, removed bool, err error) {
	if err := CheckPreconditions(kind, old, opts.Preconditions); err != nil {
		return nil, false, err
	}
	r, next, dryRun := kind.Held(), remaining(kind, old, opts), len(opts.DryRun) > 0
	if next == nil {
		if dryRun {
			return old, true, nil
		}
		if kind.Graceful() {
			store.Put(r, lastState(kind, old)) // it is marked before it goes
		}
		return lastState(kind, store.Remove(r, old.Key())), true, nil
	}
	if next == old || dryRun {
		return next, false, nil
	}
	return store.Put(r, next), false, nil
}

// Completes reports whether an update removes the last reason for which an object that is
// being deleted was kept.
func Completes(old, obj *object.Object) bool {
	was, is := old.Meta(), obj.Meta()
	if spec, _ := obj.Fields["spec"].(map[string]any); spec["finalizers"] != nil && is.GetKind() == "Namespace" {
		return false // not empty yet
	}
	grace := was.GetDeletionGracePeriodSeconds()
	return !object.Unset(was.GetDeletionTimestamp()) && len(is.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// CheckPreconditions refuses the deletion of an object that is not as its caller requires.
func CheckPreconditions(kind *kinds.Kind, old *object.Object, only *metav1.Preconditions) error {
	if only == nil {
		return nil
	}
	m := old.Meta()
	if only.UID != nil && *only.UID != m.GetUID() {
		return errDeletePrecondition(kind, m.GetName(), "UID", string(*only.UID), string(m.GetUID()), "deleted and then recreated")
	}
	if only.ResourceVersion != nil && *only.ResourceVersion != m.GetResourceVersion() {
		return errDeletePrecondition(kind, m.GetName(), "ResourceVersion", *only.ResourceVersion, m.GetResourceVersion(), "modified")
	}
	return nil
}

func errDeletePrecondition(k *kinds.Kind, name, field, want, got, happened string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Kind}, name, fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", field, want, field, got, happened))
}

// remaining returns what is left of an object once it is deleted: nil if it is removed at
// once, old itself if it waits already.
func remaining(k *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) *object.Object {
	if next, terminates := terminating(k, old); terminates {
		return next
	}
	next := old.Copy()
	m := next.Meta()
	grace := graceOf(k, old, opts)
	if deleting := m.GetDeletionTimestamp(); !object.Unset(deleting) && k.Graceful() {
		pending := m.GetDeletionGracePeriodSeconds()
		if pending != nil && *pending > 0 && (opts.GracePeriodSeconds == nil || *opts.GracePeriodSeconds >= *pending) {
			return old // only a shorter time is news
		}
	}
	changed := setPropagation(next, k, opts)
	if grace == 0 && len(m.GetFinalizers()) == 0 {
		return nil
	}
	was := m.GetDeletionTimestamp()
	if object.Unset(was) {
		if m.GetGeneration() > 0 {
			m.SetGeneration(m.GetGeneration() + 1)
		}
		m.SetDeletionTimestamp(new(metav1.NewTime(object.Now().Add(time.Duration(grace) * time.Second))))
		m.SetDeletionGracePeriodSeconds(&grace)
		return next
	}
	if pending := m.GetDeletionGracePeriodSeconds(); pending != nil && grace < *pending {
		end := metav1.NewTime(was.Add(time.Duration(grace-*pending) * time.Second))
		if at := object.Now(); end.Before(&at) {
			end = at
		}
		m.SetDeletionTimestamp(&end)
		m.SetDeletionGracePeriodSeconds(&grace)
		return next
	}
	if changed {
		return next
	}
	return old
}

// terminating returns a namespace or a CRD that is being deleted: it stays until a
// controller has emptied it and removes its finalizers.
func terminating(k *kinds.Kind, old *object.Object) (next *object.Object, terminates bool) {
	if k.GroupResource() == kinds.Definitions && object.Unset(old.Meta().GetDeletionTimestamp()) {
		return markDefinition(old), true
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	finalizers, _ := spec["finalizers"].([]any)
	if k.GroupResource().String() != "namespaces" || len(finalizers) == 0 {
		return nil, false
	}
	if !object.Unset(old.Meta().GetDeletionTimestamp()) {
		return old, true
	}
	next = old.Copy()
	next.Meta().SetDeletionTimestamp(new(object.Now()))
	jsontree.SetIn(next.Fields, "Terminating", "status", "phase")
	return next, true
}

// lastState returns a removed object as the answer to its deletion shows it: an object of
// a kind with a grace period is marked.
func lastState(k *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !k.Graceful() {
		return obj
	}
	obj = obj.Copy()
	m := obj.Meta()
	if object.Unset(m.GetDeletionTimestamp()) {
		m.SetGeneration(m.GetGeneration() + 1)
		m.SetDeletionTimestamp(new(object.Now()))
	}
	m.SetDeletionGracePeriodSeconds(new(int64(0)))
	return obj
}

// graceOf returns how many seconds the object has to end.
func graceOf(k *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) int64 {
	if !k.Graceful() {
		return 0
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	grace := int64(defaults.PodGrace)
	if own, ok := spec["terminationGracePeriodSeconds"].(int64); ok {
		grace = own
	}
	if opts.GracePeriodSeconds != nil {
		grace = *opts.GracePeriodSeconds
	}
	if grace < 0 {
		grace = 1
	}
	// A Pod that runs nowhere, or has ended, needs no time.
	status, _ := old.Fields["status"].(map[string]any)
	if node, _ := spec["nodeName"].(string); node == "" || status["phase"] == "Failed" || status["phase"] == "Succeeded" {
		return 0
	}
	return grace
}

// setPropagation sets the finalizers that say what happens to dependents, and reports
// whether that changed anything.
func setPropagation(obj *object.Object, k *kinds.Kind, opts *metav1.DeleteOptions) bool {
	m := obj.Meta()
	was := m.GetFinalizers()
	is := slices.DeleteFunc(slices.Clone(was), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch propagationOf(k, was, opts) {
	case metav1.DeletePropagationOrphan:
		is = append(is, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		is = append(is, metav1.FinalizerDeleteDependents)
	}
	if sameMembers(was, is) {
		return false
	}
	m.SetFinalizers(is)
	return true
}

func sameMembers(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// propagationOf returns what happens to dependents: what the request asks for, or else
// what the object's finalizers say already, or else the default of its kind.
func propagationOf(k *kinds.Kind, finalizers []string, opts *metav1.DeleteOptions) metav1.DeletionPropagation {
	switch {
	case opts.PropagationPolicy != nil:
		return *opts.PropagationPolicy
	case opts.OrphanDependents != nil && *opts.OrphanDependents:
		return metav1.DeletePropagationOrphan
	case opts.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case k.Is(kinds.Orphaning):
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// markDefinition returns a CRD as the first request to delete it leaves it.
func markDefinition(old *object.Object) *object.Object {
	crd, err := kinds.DefinitionOf(old)
	if err != nil {
		return old
	}
	next := old.Copy()
	m := next.Meta()
	m.SetDeletionTimestamp(new(object.Now()))
	if !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		m.SetFinalizers(append(m.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer))
	}
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	if written, err := kinds.ObjectOfTyped(&kinds.Kind{GroupVersionKind: models.DefinitionKind}, crd); err == nil {
		next.Fields["status"] = written.Fields["status"]
	}
	return next
}
