// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// AlreadyControlledError reports that an object already has a controller; it can have
// only one.
type AlreadyControlledError struct {
	// Object whose controller was to be set.
	Object Key
	// Controller of the object.
	Controller metav1.OwnerReference
}

func (e *AlreadyControlledError) Error() string {
	return fmt.Sprintf("object %s is already controlled by %s %s of UID %s", keyText(e.Object), e.Controller.Kind, e.Controller.Name, e.Controller.UID)
}

// SetControllerReference makes owner the controller of object: source.Owned maps events
// of object to owner, and the garbage collector deletes object after owner. owner must
// have been read from the server, because the reference holds its UID; its kind is
// looked up in scheme, except for unstructured objects.
//
// Owners that the garbage collector would consider missing, and therefore delete
// object, are an error: an owner in another namespace, and a namespaced owner of a
// cluster-scoped object. A second controller is an *AlreadyControlledError. On an error
// object is unchanged.
func SetControllerReference(owner, object kube.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, object, scheme)
	if err != nil {
		return err
	}
	if is := metav1.GetControllerOfNoCopy(object); is != nil && is.UID != ref.UID {
		return &AlreadyControlledError{Object: kube.KeyOf(object), Controller: *is}
	}
	ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	putOwnerReference(object, ref)
	return nil
}

// SetOwnerReference makes owner one of the owners of object, which can have several:
// the garbage collector deletes object when all are gone. source.OwnedByAny maps events
// to all of them. Errors are those of SetControllerReference. If owner is already the
// controller, it stays the controller.
func SetOwnerReference(owner, object kube.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, object, scheme)
	if err != nil {
		return err
	}
	if i := ownerIndex(object.GetOwnerReferences(), ref.UID); i >= 0 {
		is := object.GetOwnerReferences()[i]
		ref.Controller, ref.BlockOwnerDeletion = is.Controller, is.BlockOwnerDeletion
	}
	putOwnerReference(object, ref)
	return nil
}

// RemoveOwnerReference removes owner, identified by its UID, from the owners of object,
// and reports whether it was one. An object without owners is never garbage-collected.
func RemoveOwnerReference(owner, object kube.Object) (changed bool) {
	refs := object.GetOwnerReferences()
	i := ownerIndex(refs, owner.GetUID())
	if i < 0 {
		return false
	}
	object.SetOwnerReferences(slices.Delete(slices.Clone(refs), i, i+1))
	return true
}

func ownerReference(owner, object kube.Object, scheme *runtime.Scheme) (ref metav1.OwnerReference, err error) {
	if isNil(owner) || isNil(object) {
		return ref, fmt.Errorf("set owner %T of %T: one of them is nil", owner, object)
	}
	kind, err := kindOf(owner, scheme)
	if err != nil {
		return ref, fmt.Errorf("set owner of %s: %w", keyText(kube.KeyOf(object)), err)
	}
	wrong := func(why string) error {
		return fmt.Errorf("set owner of %s: %s %s %s", keyText(kube.KeyOf(object)), kind.Kind, keyText(kube.KeyOf(owner)), why)
	}
	switch {
	case owner.GetUID() == "" || owner.GetName() == "":
		return ref, wrong("has no name or UID; pass one that was read from the server")
	case owner.GetUID() == object.GetUID():
		return ref, wrong("is that very object")
	case owner.GetNamespace() != "" && object.GetNamespace() == "":
		return ref, wrong("is in a namespace and the object in none: set the object's metadata.namespace; if it is of cluster scope it cannot be owned, so mark it by a label and delete it by a finalizer")
	case owner.GetNamespace() != "" && owner.GetNamespace() != object.GetNamespace():
		return ref, wrong("is in another namespace, which the garbage collector takes for an owner that is gone: mark the object by a label and delete it by a finalizer")
	}
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
}

// putOwnerReference copies the list, because others may share it.
func putOwnerReference(object kube.Object, ref metav1.OwnerReference) {
	refs := slices.Clone(object.GetOwnerReferences())
	if i := ownerIndex(refs, ref.UID); i >= 0 {
		refs[i] = ref
	} else {
		refs = append(refs, ref)
	}
	object.SetOwnerReferences(refs)
}

func ownerIndex(refs []metav1.OwnerReference, uid types.UID) int {
	return slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// kindOf returns the kind of obj: the one in the scheme or, for types that it does not
// know such as unstructured ones, the one in the object.
func kindOf(obj kube.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	own := obj.GetObjectKind().GroupVersionKind()
	if scheme == nil {
		return own, errors.New("the scheme is nil; pass mgr.Scheme()")
	}
	kinds, _, err := scheme.ObjectKinds(obj)
	switch {
	case err == nil && len(kinds) == 1:
		return kinds[0], nil
	case err == nil && !slices.Contains(kinds, own):
		return own, fmt.Errorf("type %T is registered for %d kinds in the scheme; set apiVersion and kind", obj, len(kinds))
	case own.Kind != "" && own.Version != "":
		return own, nil
	}
	return own, fmt.Errorf("type %T is not in the scheme; call AddToScheme of its package, or set apiVersion and kind", obj)
}
