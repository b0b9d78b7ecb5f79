// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
)

// Mapper names the keys that one state of an object matters to. Kind asks it for
// the old and for the new state, and adds each key once. It must not block, nor
// change the object.
type Mapper[K comparable] func(obj informer.Object) iter.Seq[K]

// Self maps an object to its own key.
func Self(obj informer.Object) iter.Seq[Key] {
	key := informer.KeyOf(obj)
	return func(yield func(Key) bool) { yield(key) }
}

// Owner maps an object to its controller: the one owner reference that says
// controller, if it is of the owners' group and kind. The version in the reference
// does not matter.
//
//	source.Kind(deployments, source.Owner(websites))
//
// While discovery has not yet told whether the owner's kind lives in namespaces,
// both keys that it could have are named.
func Owner[O informer.Object](owners *informer.SharedInformer[O]) Mapper[Key] {
	if owners == nil {
		return nil // Kind says so
	}
	return ownedBy(owners, true)
}

// AnyOwner is Owner for every owner reference of the owners' group and kind,
// controller or not.
func AnyOwner[O informer.Object](owners *informer.SharedInformer[O]) Mapper[Key] {
	if owners == nil {
		return nil
	}
	return ownedBy(owners, false)
}

// ownerKind is what a mapper needs to know of the owners.
type ownerKind interface {
	Kind() schema.GroupVersionKind
	Namespaced() (namespaced, known bool)
}

func ownedBy(owners ownerKind, controllerOnly bool) Mapper[Key] {
	return func(obj informer.Object) iter.Seq[Key] {
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

// ownerKeys are the keys that an owner called name of an object in namespace can
// have: an owner is of cluster scope or in its object's namespace.
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
