// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"maps"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// object is one version of one object. Nobody changes it once it is stored.
type object struct {
	fields map[string]any // as JSON has them
	poison bool           // its protobuf form cannot be decoded
	// encoded are the forms of it that were made.
	encoded atomic.Pointer[encoding]
	// shape is the schema that it is known to be pruned and defaulted by; nil:
	// none.
	shape objectSchema
	// defines is what it defines, if it is a CRD that can be compiled.
	defines *definition
	// labelled: of a new Job, the labels were taken from its template.
	labelled bool
}

func (o *object) meta() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.fields}
}

func (o *object) key() types.NamespacedName {
	m := o.meta()
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// copy is a deep copy, to be changed and stored.
func (o *object) copy() *object {
	return &object{fields: runtime.DeepCopyJSON(o.fields), poison: o.poison, defines: o.defines, labelled: o.labelled}
}

// at is the object with another resourceVersion. It shares all else.
func (o *object) at(revision int64) *object {
	fields := maps.Clone(o.fields)
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	fields["metadata"] = metadata
	return &object{fields: fields, poison: o.poison, shape: o.shape, defines: o.defines}
}

// revision is the version of a stored object.
func (o *object) revision() int64 {
	n, _ := strconv.ParseInt(o.meta().GetResourceVersion(), 10, 64)
	return n
}

// labelSet are the labels of an object.
func labelSet(o *object) labels.Set { return o.meta().GetLabels() }

// objectOf is obj, typed or unstructured, as the server holds it.
func objectOf(obj runtime.Object) (*object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return (&object{fields: fields}).copy(), nil
}

// unset reports whether a timestamp of metadata is not set.
func unset(t *metav1.Time) bool { return t == nil || t.IsZero() }
