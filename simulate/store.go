// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// createLocked stores a new object under the rules of a create.
func (s *Server) createLocked(kind *Kind, obj *object) (*object, error) {
	m, r := obj.meta(), kind.resource()
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(s.nameLocked(m.GetGenerateName()))
	}
	switch {
	case m.GetName() == "":
		return nil, errInvalid(kind.GroupKind(), "", "metadata.name", "Required value: name or generateName is required")
	case m.GetResourceVersion() != "" && !obj.poison && m.GetUID() == "":
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	case s.mu.log.get(r, obj.key()) != nil:
		return nil, apierrors.NewAlreadyExists(r, m.GetName())
	}
	s.mu.uids++
	m.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.mu.uids)))
	m.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	if kind.countsGenerations(obj) {
		m.SetGeneration(1)
	}
	stored := s.mu.log.put(r, obj.key(), obj)
	s.tellLocked()
	return stored, nil
}

// nameLocked appends five characters that no other name of the server has.
func (s *Server) nameLocked(prefix string) string {
	s.mu.names[prefix]++
	return fmt.Sprintf("%s%05s", prefix, strconv.FormatInt(int64(s.mu.names[prefix]), 36))
}

// countsGenerations reports whether a change of obj's spec is counted.
func (k *Kind) countsGenerations(obj *object) bool {
	_, spec := obj.fields["spec"]
	return spec || !k.builtin
}

// updateLocked replaces old by obj under the rules of an update.
func (s *Server) updateLocked(kind *Kind, old, obj *object) (*object, error) {
	r, was, m := kind.resource(), old.meta(), obj.meta()
	if uid := m.GetUID(); uid != "" && uid != was.GetUID() {
		return nil, errPrecondition(r, m.GetName(), "UID", string(uid), string(was.GetUID()))
	}
	switch version := m.GetResourceVersion(); {
	case version == "" && !kind.builtin:
		return nil, errInvalid(kind.GroupKind(), m.GetName(), "metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update")
	case version != "" && version != was.GetResourceVersion():
		return nil, errConflict(r, m.GetName())
	}
	keep(was, m)
	if same(old, obj) {
		return old, nil // not even a new version
	}
	if kind.countsGenerations(obj) && specOf(old) != nil && !reflect.DeepEqual(specOf(old), specOf(obj)) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	if unset(was.GetDeletionTimestamp()) {
		stored := s.mu.log.put(r, obj.key(), obj)
		s.tellLocked()
		return stored, nil
	}
	for _, f := range m.GetFinalizers() {
		if !slices.Contains(was.GetFinalizers(), f) {
			return nil, errInvalid(kind.GroupKind(), m.GetName(), "metadata.finalizers", fmt.Sprintf("Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", f))
		}
	}
	if len(m.GetFinalizers()) > 0 {
		stored := s.mu.log.put(r, obj.key(), obj)
		s.tellLocked()
		return stored, nil
	}
	// The answer to a write that takes the last finalizer has the old version.
	s.mu.log.remove(r, obj.key())
	s.tellLocked()
	return obj, nil
}

// keep carries over what a client cannot change.
func keep(was, m *unstructured.Unstructured) {
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	m.SetGeneration(was.GetGeneration())
	m.SetResourceVersion(was.GetResourceVersion())
}

// same reports whether two objects are equal in all that is stored.
func same(a, b *object) bool {
	if a.poison || b.poison {
		return false
	}
	a, b = a.copy(), b.copy()
	for _, o := range []*object{a, b} {
		delete(o.fields, "kind")
		delete(o.fields, "apiVersion")
	}
	return reflect.DeepEqual(a.fields, b.fields)
}

// specOf is what counts for the generation: all but metadata and status.
func specOf(o *object) map[string]any {
	out := map[string]any{}
	for name, value := range o.fields {
		switch name {
		case "metadata", "status", "kind", "apiVersion":
		default:
			out[name] = value
		}
	}
	return out
}

// deleteLocked removes old, or marks it as being deleted while it has
// finalizers. gone: it was removed.
func (s *Server) deleteLocked(kind *Kind, old *object, only *metav1.Preconditions) (obj *object, gone bool, err error) {
	m, r := old.meta(), kind.resource()
	if only != nil && only.UID != nil && *only.UID != m.GetUID() {
		return nil, false, errPrecondition(r, m.GetName(), "UID", string(*only.UID), string(m.GetUID()))
	}
	if only != nil && only.ResourceVersion != nil && *only.ResourceVersion != m.GetResourceVersion() {
		return nil, false, errPrecondition(r, m.GetName(), "ResourceVersion", *only.ResourceVersion, m.GetResourceVersion())
	}
	if len(m.GetFinalizers()) == 0 {
		obj = s.mu.log.remove(r, old.key())
		s.tellLocked()
		return obj, true, nil
	}
	if !unset(m.GetDeletionTimestamp()) {
		return old, false, nil
	}
	obj = old.copy()
	m = obj.meta()
	m.SetDeletionTimestamp(new(metav1.NewTime(time.Now().UTC().Truncate(time.Second))))
	m.SetDeletionGracePeriodSeconds(new(int64(0)))
	if kind.countsGenerations(obj) {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	obj = s.mu.log.put(r, old.key(), obj)
	s.tellLocked()
	return obj, false, nil
}
