// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package object holds what the server stores: versions of objects with their fields as
// JSON, their encodings, and the interface of a kind's schema.
package object

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// Now returns the current time with the precision of objects.
func Now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// Object is one version of one object. It does not change once it is stored.
type Object struct {
	Fields  map[string]any // as decoded from JSON
	Corrupt bool           // its protobuf form cannot be decoded
	// Encoded is the list of its cached encodings.
	Encoded atomic.Pointer[Encoding]
	// Shape is the schema by which it is known to be pruned and defaulted; nil: none.
	Shape Schema
	// Defines is the definition of a CRD that compiled.
	Defines any
	// Labelled means that the labels of a new Job were taken from its template.
	Labelled bool
}

func (o *Object) Meta() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.Fields}
}

func (o *Object) Key() types.NamespacedName {
	m := o.Meta()
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// Copy returns a deep copy, which may be changed and stored.
func (o *Object) Copy() *Object {
	return &Object{Fields: runtime.DeepCopyJSON(o.Fields), Corrupt: o.Corrupt, Defines: o.Defines, Labelled: o.Labelled}
}

// At returns the object with another resourceVersion. It shares the rest.
func (o *Object) At(revision int64) *Object {
	fields := maps.Clone(o.Fields)
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	fields["metadata"] = metadata
	return &Object{Fields: fields, Corrupt: o.Corrupt, Shape: o.Shape, Defines: o.Defines}
}

// Revision returns the resourceVersion of a stored object.
func (o *Object) Revision() int64 {
	n, _ := strconv.ParseInt(o.Meta().GetResourceVersion(), 10, 64)
	return n
}

// LabelSet returns the labels of an object.
func LabelSet(o *Object) labels.Set { return o.Meta().GetLabels() }

// ObjectOf converts obj, typed or unstructured, to the server's form.
func ObjectOf(obj runtime.Object) (*Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok { // whose fields may be of any Go type
		fields, err := jsontree.Of[map[string]any](u.Object)
		return &Object{Fields: fields}, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return (&Object{Fields: fields}).Copy(), nil
}

// Unset reports whether a timestamp of metadata is not set.
func Unset(t *metav1.Time) bool { return t == nil || t.IsZero() }

// TypedOf decodes obj into its Go type.
func TypedOf[T any](obj *Object) (*T, error) {
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Fields, typed)
}

// Retype encodes a typed object back into obj.
func Retype(obj *Object, typed any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	fields["apiVersion"], fields["kind"] = obj.Fields["apiVersion"], obj.Fields["kind"]
	obj.Fields = fields
	return nil
}

func MetadataOf(o *Object) map[string]any {
	metadata, _ := o.Fields["metadata"].(map[string]any)
	return metadata
}

// Same reports whether two objects are stored identically.
func Same(a, b *Object) bool {
	return !a.Corrupt && !b.Corrupt && jsontree.SameBut(a.Fields, b.Fields, "kind", "apiVersion")
}

func NameOf(m metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

func NodeOf(obj *Object) string {
	spec, _ := obj.Fields["spec"].(map[string]any)
	node, _ := spec["nodeName"].(string)
	return node
}

// Resources that the server and its actors refer to by name.
var (
	Pods       = schema.GroupResource{Resource: "pods"}
	Namespaces = schema.GroupResource{Resource: "namespaces"}
	Accounts   = schema.GroupResource{Resource: "serviceaccounts"}
	ConfigMaps = schema.GroupResource{Resource: "configmaps"}
)
