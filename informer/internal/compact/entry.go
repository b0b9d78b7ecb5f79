// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// Entry is a packed object. It takes the object's place in the Indexer and in
// backlogs, and two entries are the same state only if they are the same
// pointer. Its own methods are for the informer, which reads mostly labels and
// the resourceVersion: they are at hand, the other getters open the object, and
// the setters do nothing. Readers get what Open returns.
type Entry struct {
	readOnly
	of      *generation
	packed  string       // compressed, or as encoded if of has no expander
	labels  string       // as in block; often shared, else a part of packed's memory
	version kube.Version // 0: as in the object
	opened  atomic.Pointer[opened]
}

// Open returns obj, or the object that is packed in it. An error means that the
// packed bytes are corrupt.
func Open(obj kube.Object) (kube.Object, error) {
	if e, ok := obj.(*Entry); ok {
		return e.Open()
	}
	return obj, nil
}

// IsPacked reports whether obj is packed.
func IsPacked(obj kube.Object) bool {
	_, ok := obj.(*Entry)
	return ok
}

// Is reports whether readers of stored may hold obj.
func Is(stored, obj kube.Object) bool {
	if e, ok := stored.(*Entry); ok {
		return obj != nil && e.peek() == obj
	}
	return stored == obj
}

// Size returns how many bytes obj has packed; 0: it is not packed.
func Size(obj kube.Object) int64 {
	e, ok := obj.(*Entry)
	if !ok {
		return 0
	}
	return ofEntry + int64(len(e.packed))
}

// HeapOf is Size, at most the largest number of 32 bits.
func HeapOf(obj kube.Object) uint32 { return uint32(min(Size(obj), math.MaxUint32)) }

// ofEntry is the size of an Entry in memory.
const ofEntry = 64

// Forget makes the next Open decode the object again, if obj is what it would
// return now. It reports whether it was.
func (e *Entry) Forget(obj kube.Object) bool {
	for {
		o := e.opened.Load()
		if o == nil || e.of.packer.held(o) != obj {
			return false
		}
		if e.opened.CompareAndSwap(o, nil) {
			return true
		}
	}
}

// peek returns the open object, or nil.
func (e *Entry) peek() kube.Object {
	o := e.opened.Load()
	if o == nil {
		return nil
	}
	return e.of.packer.held(o)
}

// object returns the object, or one without any content if it cannot be opened.
func (e *Entry) object() kube.Object {
	obj, err := e.Open()
	if err != nil {
		return &metav1.PartialObjectMetadata{}
	}
	return obj
}

// GetLabels implements metav1.Object without opening the object.
func (e *Entry) GetLabels() map[string]string { return block(e.labels).set() }

// GetResourceVersion implements metav1.Object, usually without opening the
// object.
func (e *Entry) GetResourceVersion() string {
	if e.version != 0 {
		return e.version.String()
	}
	return e.object().GetResourceVersion()
}

func (e *Entry) GetNamespace() string               { return e.object().GetNamespace() }
func (e *Entry) GetName() string                    { return e.object().GetName() }
func (e *Entry) GetGenerateName() string            { return e.object().GetGenerateName() }
func (e *Entry) GetUID() types.UID                  { return e.object().GetUID() }
func (e *Entry) GetGeneration() int64               { return e.object().GetGeneration() }
func (e *Entry) GetSelfLink() string                { return e.object().GetSelfLink() }
func (e *Entry) GetCreationTimestamp() metav1.Time  { return e.object().GetCreationTimestamp() }
func (e *Entry) GetDeletionTimestamp() *metav1.Time { return e.object().GetDeletionTimestamp() }
func (e *Entry) GetDeletionGracePeriodSeconds() *int64 {
	return e.object().GetDeletionGracePeriodSeconds()
}
func (e *Entry) GetAnnotations() map[string]string           { return e.object().GetAnnotations() }
func (e *Entry) GetFinalizers() []string                     { return e.object().GetFinalizers() }
func (e *Entry) GetOwnerReferences() []metav1.OwnerReference { return e.object().GetOwnerReferences() }
func (e *Entry) GetManagedFields() []metav1.ManagedFieldsEntry {
	return e.object().GetManagedFields()
}

// GetObjectKind implements runtime.Object. It opens the object.
func (e *Entry) GetObjectKind() schema.ObjectKind { return e.object().GetObjectKind() }

// DeepCopyObject returns a copy of the opened object.
func (e *Entry) DeepCopyObject() runtime.Object { return kube.Copy(e.object()) }

// readOnly has the setters of metav1.Object. They do nothing.
type readOnly struct{}

func (readOnly) SetNamespace(string)                          {}
func (readOnly) SetName(string)                               {}
func (readOnly) SetGenerateName(string)                       {}
func (readOnly) SetUID(types.UID)                             {}
func (readOnly) SetResourceVersion(string)                    {}
func (readOnly) SetGeneration(int64)                          {}
func (readOnly) SetSelfLink(string)                           {}
func (readOnly) SetCreationTimestamp(metav1.Time)             {}
func (readOnly) SetDeletionTimestamp(*metav1.Time)            {}
func (readOnly) SetDeletionGracePeriodSeconds(*int64)         {}
func (readOnly) SetLabels(map[string]string)                  {}
func (readOnly) SetAnnotations(map[string]string)             {}
func (readOnly) SetFinalizers([]string)                       {}
func (readOnly) SetOwnerReferences([]metav1.OwnerReference)   {}
func (readOnly) SetManagedFields([]metav1.ManagedFieldsEntry) {}
