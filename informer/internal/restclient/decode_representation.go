// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/jsonplan"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// Differences in decoding between the representations of a kind.

// metadataKind is the kind of an object reduced to its metadata.
const metadataKind = "PartialObjectMetadata"

// isKind reports whether an object may be of that kind. Some servers omit the
// apiVersion.
func (d *Decoder) isKind(apiVersion, kind string) bool {
	return kind == d.kind.Kind && d.isVersion(apiVersion) || kind == metadataKind && d.metadataOnly
}

func (d *Decoder) isList(apiVersion, kind string) bool {
	return kind == d.kind.Kind+"List" && d.isVersion(apiVersion) || kind == metadataKind+"List" && d.metadataOnly
}

func (d *Decoder) isVersion(apiVersion string) bool {
	return apiVersion == "" || apiVersion == d.apiVersion
}

// mayBeList reports whether a JSON list can be of the kind if its items are.
// The list of a custom kind may have any name, that of a built-in kind may not:
// an empty list of another kind must not count as a list without objects.
func (d *Decoder) mayBeList(apiVersion, kind string) bool {
	switch {
	case d.isList(apiVersion, kind), kind == "", kind == "List" && apiVersion == "v1":
		return true
	case kind == "Status", d.protobuf && !d.metadataOnly:
		return false
	}
	return d.isVersion(apiVersion)
}

// readJSON decodes what is kept of raw into obj, by plan if its type has one.
// Parts of it may be shared: nothing below obj may be modified.
func (d *Decoder) readJSON(raw []byte, obj kube.Object) (jsonplan.Sizes, error) {
	if plan := d.json(); plan != nil {
		opts := jsonplan.Options{Table: d.table(), StringsOnly: !d.kept.Parts}
		sizes, err := plan.Decode(raw, obj, opts)
		if err == nil && d.kept.Parts && d.kept.Checked {
			opts.Table = nil
			err = d.check(obj, func(alone kube.Object) (err error) { sizes, err = plan.Decode(raw, alone, opts); return err })
		}
		return sizes, err
	}
	err := readByReference(raw, obj)
	if err == nil {
		d.leaveOut(obj)
	}
	return jsonplan.Sizes{}, err
}

// ownVersion gives obj a resourceVersion in memory of its own: see package
// origin. Nothing below obj is modified.
func ownVersion(obj kube.Object) {
	v := strings.Clone(obj.GetResourceVersion())
	u, ok := any(obj).(*unstructured.Unstructured)
	if !ok {
		obj.SetResourceVersion(v)
		return
	}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		metadata["resourceVersion"] = v
		u.Object["metadata"] = metadata
	}
}

func readByReference(raw []byte, obj kube.Object) error {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		// The UnmarshalJSON of Unstructured parses the text twice, to detect a
		// list.
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object)
	}
	if err := decodelimit.CostlyPlanOf(reflect.TypeOf(obj)).JSON(raw); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, obj)
}

// kindIn returns the apiVersion and kind in a decoded object, possibly empty.
func kindIn(obj kube.Object) (apiVersion, kind string) {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		return u.GetAPIVersion(), u.GetKind() // its schema.ObjectKind parses the apiVersion too
	}
	if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		return meta.APIVersion, meta.Kind
	}
	return obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
}

func dropManagedFields(obj kube.Object) {
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		// Also if it is null, as after CutManagedFields.
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
		return
	}
	if len(obj.GetManagedFields()) > 0 {
		obj.SetManagedFields(nil)
	}
}

// jsonMetadata returns the metadata of an undecodable object, nil if it is not
// fully decodable.
func (d *Decoder) jsonMetadata(raw []byte) *metav1.PartialObjectMetadata {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if encoding.MetadataFits(false, raw) != nil || encoding.Guard(func() error { return kjson.UnmarshalCaseSensitivePreserveInts(raw, &object) }) != nil {
		return nil
	}
	return d.metadata(object.Metadata)
}

// protobufMetadata is jsonMetadata for protobuf.
func (d *Decoder) protobufMetadata(raw []byte) *metav1.PartialObjectMetadata {
	_, metadata, _, _ := encoding.CutField(raw, encoding.ObjectMetadata)
	var meta metav1.ObjectMeta
	if encoding.MetadataFits(true, raw) != nil || encoding.Guard(func() error { return meta.Unmarshal(metadata) }) != nil {
		return nil
	}
	return d.metadata(meta)
}

func (d *Decoder) metadata(meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	if meta.Name == "" {
		return nil
	}
	if !d.kept.ManagedFields {
		meta.ManagedFields = nil
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	fields.Prune(out, d.kept.Fields)
	out.APIVersion, out.Kind = d.apiVersion, d.kind.Kind
	return out
}

// Kindless returns an error if t alone does not determine a kind.
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

// OfMetadata reports whether t holds only metadata.
func OfMetadata(t reflect.Type) bool { return t == MetadataType }

// OfAnyKind reports whether t does not determine its kind.
func OfAnyKind(t reflect.Type) bool { return Kindless(t) != nil }
