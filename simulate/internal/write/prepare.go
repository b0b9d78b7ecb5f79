// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// PrepareCreate drops from a new object what its writer cannot set.
func PrepareCreate(k *kinds.Kind, obj *object.Object) {
	if k.Status && k.ResetsStatus() {
		delete(obj.Fields, "status")
		if k.Builtin {
			obj.Fields["status"] = k.FirstStatus(obj)
		}
	}
	m := obj.Meta()
	if k.CountsFromCreation(obj) {
		m.SetGeneration(1)
	}
}

// PrepareUpdate copies from old what the writer of obj cannot change.
func PrepareUpdate(k *kinds.Kind, subresource string, old, obj *object.Object) {
	was, m := old.Meta(), obj.Meta()
	if subresource == "binding" || subresource == "approval" {
		// These subresources set parts of the status: that a Pod is scheduled, that a
		// request is approved.
	} else if subresource == "status" {
		keepForStatus(k, old, obj)
		m = obj.Meta()
	} else if k.Status && (subresource != "" || k.KeepsStatus()) {
		jsontree.KeepField(old.Fields, obj.Fields, "status")
	}
	if m.GetUID() == "" {
		m.SetUID(was.GetUID())
	}
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetSelfLink(was.GetSelfLink())
	if object.Unset(m.GetDeletionTimestamp()) || !object.Unset(was.GetDeletionTimestamp()) {
		m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if m.GetDeletionGracePeriodSeconds() == nil || object.Unset(was.GetDeletionTimestamp()) {
		m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
	m.SetResourceVersion(was.GetResourceVersion())
	if m.GetGenerateName() == "" {
		m.SetGenerateName(was.GetGenerateName())
	}
	m.SetGeneration(was.GetGeneration())
	if subresource != "status" && subresource != "binding" && Counts(k, old, obj) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
}

// keepForStatus restores all of obj that a write of its status cannot change.
func keepForStatus(k *kinds.Kind, old, obj *object.Object) {
	if !k.Builtin {
		status, has := obj.Fields["status"]
		managed := obj.Meta().GetManagedFields()
		version := obj.Meta().GetResourceVersion()
		obj.Fields = runtime.DeepCopyJSON(old.Fields)
		delete(obj.Fields, "status")
		if has {
			obj.Fields["status"] = status
		}
		obj.Meta().SetManagedFields(managed)
		obj.Meta().SetResourceVersion(version)
		return
	}
	for name := range obj.Fields {
		if name != "status" && name != "metadata" && name != "kind" && name != "apiVersion" {
			jsontree.KeepField(old.Fields, obj.Fields, name)
		}
	}
	for name := range old.Fields {
		if name != "status" && name != "metadata" {
			jsontree.KeepField(old.Fields, obj.Fields, name)
		}
	}
	was, _ := old.Fields["metadata"].(map[string]any)
	is, _ := obj.Fields["metadata"].(map[string]any)
	for _, name := range k.KeptByStatus() {
		jsontree.KeepField(was, is, name)
	}
}

// Counts reports whether the change from old to obj increments the generation.
func Counts(k *kinds.Kind, old, obj *object.Object) bool {
	if old.Meta().GetGeneration() == 0 && !k.CountsFromCreation(obj) {
		return false
	}
	but := []string{"metadata", "kind", "apiVersion"}
	if k.Status {
		but = append(but, "status")
	}
	if !jsontree.SameBut(old.Fields, obj.Fields, but...) {
		return true
	}
	return k.CountsAnnotations() && !reflect.DeepEqual(old.Meta().GetAnnotations(), obj.Meta().GetAnnotations())
}
