// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
)

// prepareCreate drops from a new object what its maker cannot decide.
func (k *Kind) prepareCreate(obj *object) {
	if k.status && k.resetsStatus() {
		delete(obj.fields, "status")
		if k.builtin {
			obj.fields["status"] = k.firstStatus(obj)
		}
	}
	m := obj.meta()
	if k.countsFromCreation(obj) {
		m.SetGeneration(1)
	}
}

// prepareUpdate carries over from old what the writer of obj cannot change.
func (k *Kind) prepareUpdate(subresource string, old, obj *object) {
	was, m := old.meta(), obj.meta()
	if subresource == "binding" || subresource == "approval" {
		// these say something of the status: that a Pod is scheduled, that a request is approved
	} else if subresource == "status" {
		k.keepForStatus(old, obj)
		m = obj.meta()
	} else if k.status && (subresource != "" || k.keepsStatus()) {
		jsonvalue.KeepField(old.fields, obj.fields, "status")
	}
	if m.GetUID() == "" {
		m.SetUID(was.GetUID())
	}
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetSelfLink(was.GetSelfLink())
	if unset(m.GetDeletionTimestamp()) || !unset(was.GetDeletionTimestamp()) {
		m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if m.GetDeletionGracePeriodSeconds() == nil || unset(was.GetDeletionTimestamp()) {
		m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
	m.SetResourceVersion(was.GetResourceVersion())
	if m.GetGenerateName() == "" {
		m.SetGenerateName(was.GetGenerateName())
	}
	m.SetGeneration(was.GetGeneration())
	if subresource != "status" && subresource != "binding" && k.counts(old, obj) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
}

// keepForStatus leaves of obj only what a write of its status can change.
func (k *Kind) keepForStatus(old, obj *object) {
	if !k.builtin {
		status, has := obj.fields["status"]
		managed := obj.meta().GetManagedFields()
		version := obj.meta().GetResourceVersion()
		obj.fields = runtime.DeepCopyJSON(old.fields)
		delete(obj.fields, "status")
		if has {
			obj.fields["status"] = status
		}
		obj.meta().SetManagedFields(managed)
		obj.meta().SetResourceVersion(version)
		return
	}
	for name := range obj.fields {
		if name != "status" && name != "metadata" && name != "kind" && name != "apiVersion" {
			jsonvalue.KeepField(old.fields, obj.fields, name)
		}
	}
	for name := range old.fields {
		if name != "status" && name != "metadata" {
			jsonvalue.KeepField(old.fields, obj.fields, name)
		}
	}
	was, _ := old.fields["metadata"].(map[string]any)
	is, _ := obj.fields["metadata"].(map[string]any)
	for _, name := range k.keptByStatus() {
		jsonvalue.KeepField(was, is, name)
	}
}

// counts reports whether the change from old to obj is counted in the
// generation.
func (k *Kind) counts(old, obj *object) bool {
	if old.meta().GetGeneration() == 0 && !k.countsFromCreation(obj) {
		return false
	}
	but := []string{"metadata", "kind", "apiVersion"}
	if k.status {
		but = append(but, "status")
	}
	if !jsonvalue.SameBut(old.fields, obj.fields, but...) {
		return true
	}
	return k.countsAnnotations() && !reflect.DeepEqual(old.meta().GetAnnotations(), obj.meta().GetAnnotations())
}

// same reports whether two objects are equal in all that is stored.
func same(a, b *object) bool {
	return !a.poison && !b.poison && jsonvalue.SameBut(a.fields, b.fields, "kind", "apiVersion")
}
