// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
)

// What differs in the decoding of the representations of a kind.

// metadataKind is what a server names the metadata alone of an object.
const metadataKind = "PartialObjectMetadata"

// isKind says whether an object may be of the kind that the server names. Some
// servers leave the apiVersion out.
func (d *Decoder[T]) isKind(apiVersion, kind string) bool {
	return kind == d.kind.Kind && d.isVersion(apiVersion) || kind == metadataKind && d.metadataOnly
}

// isList is isKind of a list.
func (d *Decoder[T]) isList(apiVersion, kind string) bool {
	return kind == d.kind.Kind+"List" && d.isVersion(apiVersion) || kind == metadataKind+"List" && d.metadataOnly
}

func (d *Decoder[T]) isVersion(apiVersion string) bool {
	return apiVersion == "" || apiVersion == d.apiVersion
}

// mayBeList says whether a JSON list can be of the kind, if its items say that
// they are. A custom kind may name its list as it likes. A built-in kind does not,
// and an empty list of another kind must not pass for one of no objects.
func (d *Decoder[T]) mayBeList(apiVersion, kind string) bool {
	switch {
	case d.isList(apiVersion, kind), kind == "", kind == "List" && apiVersion == "v1":
		return true
	case kind == "Status", d.protobuf && !d.metadataOnly:
		return false
	}
	return d.isVersion(apiVersion)
}

// readJSON reads raw into obj.
func readJSON[T base.Object](raw []byte, obj T) error {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		// Its own UnmarshalJSON reads the text once more, to see whether it is a list.
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, obj)
}

// kindIn is the apiVersion and kind that a decoded object says it is of; empty:
// none.
func kindIn[T base.Object](obj T) (apiVersion, kind string) {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		return u.GetAPIVersion(), u.GetKind() // the schema.ObjectKind of it parses the apiVersion too
	}
	if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		return meta.APIVersion, meta.Kind
	}
	return obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
}

// dropManagedFields takes metadata.managedFields out of an object.
func dropManagedFields[T base.Object](obj T) {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		// Also where it is null, as after the field was cut out of the text.
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
		return
	}
	if len(obj.GetManagedFields()) > 0 {
		obj.SetManagedFields(nil)
	}
}

// jsonMetadata is the metadata of an object that cannot be decoded otherwise,
// nil when it cannot be read in full.
func (d *Decoder[T]) jsonMetadata(raw []byte) *metav1.PartialObjectMetadata {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if encoding.MetadataFits(false, raw) != nil || encoding.Guard(func() error { return kjson.UnmarshalCaseSensitivePreserveInts(raw, &object) }) != nil {
		return nil
	}
	return d.metadata(object.Metadata)
}

// protobufMetadata does the same for protobuf.
func (d *Decoder[T]) protobufMetadata(raw []byte) *metav1.PartialObjectMetadata {
	_, metadata, _, _ := encoding.CutField(raw, encoding.ObjectMetadata)
	var meta metav1.ObjectMeta
	if encoding.MetadataFits(true, raw) != nil || encoding.Guard(func() error { return meta.Unmarshal(metadata) }) != nil {
		return nil
	}
	return d.metadata(meta)
}

func (d *Decoder[T]) metadata(meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	if meta.Name == "" {
		return nil
	}
	if !d.keepManagedFields {
		meta.ManagedFields = nil
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	out.APIVersion, out.Kind = d.apiVersion, d.kind.Kind
	return out
}

// Kindless says why t alone does not name a kind, nil if it may.
func Kindless(t reflect.Type) error {
	switch t {
	case UnstructuredType:
		return errors.New("informer for *unstructured.Unstructured: the type does not determine the kind; use informer.ForKind(factory, kind)")
	case MetadataType:
		return errors.New("informer for *metav1.PartialObjectMetadata: the type does not determine the kind; use informer.ForMetadata(factory, kind)")
	}
	return nil
}

var (
	UnstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	MetadataType     = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// OfMetadata: t holds the metadata alone.
func OfMetadata(t reflect.Type) bool { return t == MetadataType }

// OfAnyKind: t does not say its kind.
func OfAnyKind(t reflect.Type) bool { return Kindless(t) != nil }
