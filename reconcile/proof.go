// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onceSuffix marks the field owner that creates the children of Once: other objects that the
// same program creates for the parent have its name, and are not children of the set.
const onceSuffix = "-once"

// maxFieldOwner is the length of the longest name of a field owner.
const maxFieldOwner = 128

func onceOwner(fieldOwner string) string {
	return fieldOwner[:min(len(fieldOwner), maxFieldOwner-len(onceSuffix))] + onceSuffix
}

// owner returns the field owner of the set's children.
func (s *ChildSet) owner() string {
	if s.opts.FieldOwner != "" {
		return s.opts.FieldOwner
	}
	return s.writer.ChildOwner()
}

// proven returns those of surplus that the set has made: an object that the parent controls may
// also have been made beside the set.
func (s *ChildSet) proven(ctx context.Context, parent metav1.Object, surplus []child) (made []child, err error) {
	for _, c := range surplus {
		is, err := s.made(ctx, parent, c)
		if err != nil {
			return nil, fmt.Errorf("prune child %s: %w", c.name, err)
		}
		if is {
			made = append(made, c)
		}
	}
	return made, nil
}

// made reports whether the managedFields of a child show that the set has made it. Caches drop
// them by default; then the server is asked, once for each version of what the set has not made.
func (s *ChildSet) made(ctx context.Context, parent metav1.Object, c child) (bool, error) {
	if fields := c.object.GetManagedFields(); len(fields) > 0 {
		return s.wrote(fields), nil
	}
	uid, version := c.object.GetUID(), c.object.GetResourceVersion()
	if s.foreign.Has(uid, version) {
		return false, nil
	}
	is, err := s.writer.ReadChild(ctx, c.object)
	switch {
	case err != nil:
		return false, IgnoreNotFound(err)
	case is.GetUID() != uid || !s.prunable(parent, is):
		return false, nil // changed since; the event of that is on its way
	case s.wrote(is.GetManagedFields()):
		return true, nil
	case is.GetResourceVersion() == version:
		s.foreign.Put(uid, version)
	}
	return false, nil
}

// wrote reports whether the set is among the owners of an object's fields: by an apply, or by
// the creation of a child of Once.
func (s *ChildSet) wrote(fields []metav1.ManagedFieldsEntry) bool {
	owner := s.owner()
	once := onceOwner(owner)
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && (f.Manager == owner && f.Operation == metav1.ManagedFieldsOperationApply || f.Manager == once)
	})
}
