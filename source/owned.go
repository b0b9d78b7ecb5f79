// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Owned returns a source of the events of children, as keys of their
// controllers: the owner reference of each child with controller set, if it has
// the owners' group and kind. Its version does not matter. An event must pass
// every one of preds. reconcile.SetControllerReference and reconcile.ChildSet
// set the reference.
//
//	c.Watch(source.Owned(deployments, websites))
//
// The UID in the reference is not compared: when the child of a deleted owner
// is deleted too, a new owner of the same name can create a child of the same
// name, and must be notified. Reads by owner, such as those of a ChildSet, do
// compare it.
//
// Until discovery reports whether the owners' kind is namespaced, the source waits
// and is not synced (R27). Both possible keys of an owner are added if the kind is
// no longer served later, or if the informer was made by informer.New. A nil
// informer is misuse, returned by Run.
func Owned[T, O kube.Object](children *informer.SharedInformer[T], owners *informer.SharedInformer[O], preds ...Predicate) *KindSource[T, Key] {
	return owned(children, owners, true, preds)
}

// OwnedByAny is Owned for every owner reference of the owners' group and kind,
// controller or not, as set by reconcile.SetOwnerReference.
func OwnedByAny[T, O kube.Object](children *informer.SharedInformer[T], owners *informer.SharedInformer[O], preds ...Predicate) *KindSource[T, Key] {
	return owned(children, owners, false, preds)
}

func owned[T, O kube.Object](children *informer.SharedInformer[T], owners *informer.SharedInformer[O], controllerOnly bool, preds []Predicate) *KindSource[T, Key] {
	if owners == nil {
		return newKind[T, Key](children, nil, preds, errors.New("the informer of the owners is nil; give one from informer.For or informer.New"))
	}
	s := newKind(children, ownersOf(owners, controllerOnly), preds, owners.Err())
	s.owners = func() schema.GroupKind { return owners.Kind().GroupKind() }
	s.known, s.ofAny = owners.Discover, !controllerOnly
	return s
}

// ownerKind is the part of the owners' informer that keys are made with.
type ownerKind interface {
	Kind() schema.GroupVersionKind
	Namespaced() (namespaced, known bool)
}

// ownersOf maps an object to its owners.
func ownersOf(owners ownerKind, controllerOnly bool) Mapper[Key] {
	return func(obj kube.Object) iter.Seq[Key] {
		return func(yield func(Key) bool) {
			want := owners.Kind().GroupKind()
			namespaced, known := owners.Namespaced()
			for _, ref := range obj.GetOwnerReferences() {
				if controllerOnly && !ptr.Deref(ref.Controller, false) || !refers(ref, want) {
					continue
				}
				for _, key := range ownerKeys(ref.Name, obj.GetNamespace(), namespaced, known) {
					if !yield(key) {
						return
					}
				}
			}
		}
	}
}

func refers(ref metav1.OwnerReference, want schema.GroupKind) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == want.Group && ref.Kind == want.Kind
}

// ownerKeys returns the possible keys of an owner with that name of an object
// in namespace: an owner is cluster-scoped or in its object's namespace.
func ownerKeys(name, namespace string, namespaced, known bool) []Key {
	cluster, local := Key{Name: name}, Key{Namespace: namespace, Name: name}
	switch {
	case namespace == "" && known && namespaced:
		return nil // such an owner cannot exist
	case namespace == "" || known && !namespaced:
		return []Key{cluster}
	case known:
		return []Key{local}
	}
	return []Key{local, cluster}
}
