// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/ration"
)

// decoder makes objects of one kind out of bytes, each alone. Safe for
// concurrent use.
type decoder[T Object] struct {
	kind              schema.GroupVersionKind
	apiVersion        string
	apiVersionField   any // both as values of an unstructured object
	kindField         any
	object            reflect.Type // what T points to
	protobuf          bool         // T can be read from protobuf
	plainMeta         bool         // T embeds ObjectMeta as its field 1
	metadataOnly      bool
	keepManagedFields bool
	scale             *ration.Scale
}

// protobufMessage is what the generated types of the built-in kinds are.
type protobufMessage interface {
	Unmarshal(data []byte) error
}

// newDecoder returns a decoder of objects of kind into t, a pointer to a
// struct, which is T or implements it.
func newDecoder[T Object](t reflect.Type, kind schema.GroupVersionKind, keepManagedFields bool) (*decoder[T], error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("decode %s: %s is not a pointer to an API type", kind.Kind, t)
	}
	d := &decoder[T]{object: t.Elem(), keepManagedFields: keepManagedFields, metadataOnly: ofMetadata(t), scale: ration.Of(t)}
	if t == unstructuredType {
		d.scale = ration.Tree()
	}
	d.setDecoded(kind)
	_, d.protobuf = any(d.empty()).(protobufMessage)
	meta, ok := d.object.FieldByName("ObjectMeta")
	d.plainMeta = ok && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() &&
		strings.HasPrefix(meta.Tag.Get("protobuf"), "bytes,1,")
	return d, nil
}

func (d *decoder[T]) setDecoded(kind schema.GroupVersionKind) {
	d.kind, d.apiVersion = kind, kind.GroupVersion().String()
	d.apiVersionField, d.kindField = d.apiVersion, kind.Kind
}

// ofKind is d for objects of kind.
func (d *decoder[T]) ofKind(kind schema.GroupVersionKind) *decoder[T] {
	if d.kind == kind {
		return d
	}
	other := *d
	other.setDecoded(kind)
	return &other
}

func (d *decoder[T]) empty() T {
	return reflect.New(d.object).Interface().(T)
}

// page decodes one page of a list. The objects share nothing with body. The
// error is an *apierrors.StatusError when body is a Status.
func (d *decoder[T]) page(media string, body []byte) (Page[T], error) {
	return d.pageWithin(media, body, ration.Page)
}

// pageWithin is page with a limit of what decoding all objects may allocate.
func (d *decoder[T]) pageWithin(media string, body []byte, limit int64) (Page[T], error) {
	budget := &ration.Budget{Limit: limit}
	switch {
	case media == contentProtobuf:
		return d.protobufPage(body, budget)
	case media == contentJSON:
		return d.jsonPage(body, budget)
	}
	return Page[T]{}, errors.New("neither JSON nor protobuf of Kubernetes")
}

func (d *decoder[T]) protobufPage(body []byte, budget *ration.Budget) (page Page[T], err error) {
	e, err := openEnvelope(body)
	if err != nil {
		return page, err
	}
	if !d.isList(string(e.apiVersion), string(e.kind)) {
		return page, d.notAList(string(e.apiVersion), string(e.kind), body)
	}
	meta, err := splitProtobufList(e.raw, func(raw []byte) error {
		item := d.protobufItem(raw, budget)
		return page.add(item, budget)
	})
	page.ResourceVersion, page.Continue = meta.ResourceVersion, meta.Continue
	return page, err
}

func (d *decoder[T]) jsonPage(body []byte, budget *ration.Budget) (page Page[T], err error) {
	list, err := splitJSONList(body)
	if err != nil {
		return page, err
	}
	apiVersion, kind := string(list.apiVersion), string(list.kind)
	if list.items == nil || !d.mayBeList(apiVersion, kind) {
		return page, d.notAList(apiVersion, kind, body)
	}
	var meta metav1.ListMeta
	if len(list.metadata) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(list.metadata, &meta); err != nil {
			return page, fmt.Errorf("read list metadata: %w", err)
		}
	}
	// A list whose items do not name their kind must itself be of the kind.
	named, strangers := !d.isList(apiVersion, kind), false
	err = eachElement(list.items, func(raw []byte) error {
		item := d.jsonItem(raw, named, budget)
		strangers = strangers || item.stranger != sound
		if item.unreadable() {
			if id := garbledIdentity(raw); id.Name != "" {
				item = broken[T](id, item.Err, nil)
			}
		}
		return page.add(item, budget)
	})
	if named && strangers {
		return Page[T]{}, d.notAList(apiVersion, kind, body)
	}
	page.ResourceVersion, page.Continue = meta.ResourceVersion, meta.Continue
	return page, err
}

// notAList is the Status in body, or says what else it is.
func (d *decoder[T]) notAList(apiVersion, kind string, body []byte) error {
	if status, ok := decodeStatus(body); ok {
		return &apierrors.StatusError{ErrStatus: status}
	}
	if kind == d.kind.Kind+"List" && !d.isVersion(apiVersion) {
		return fmt.Errorf("the answer is a list of %s in %s, not in %s", d.kind.Kind, apiVersion, d.apiVersion)
	}
	return fmt.Errorf("the answer is of kind %q, not a list of %s", kind, d.kind.Kind)
}

// ofItem is what holds an object until it is stored.
const ofItem = 512

// add puts item on the page, or counts it when it has no key. The error is that of a
// page that has become too heavy.
func (p *Page[T]) add(item Item[T], budget *ration.Budget) error {
	if err := tooHeavy(budget.Charge(ofItem)); err != nil {
		return err
	}
	if heavy, ok := errors.AsType[*TooLargeError](item.Err); ok && heavy.Limit == budget.Limit {
		return heavy
	}
	if item.unreadable() {
		p.Unreadable++
		if p.UnreadableErr == nil {
			p.UnreadableErr = item.Err
		}
		return nil
	}
	p.Items = append(p.Items, item)
	return nil
}

// unreadable: not even the name of the object could be read.
func (i Item[T]) unreadable() bool { return i.Err != nil && i.Key.Name == "" }

// protobufItem decodes one object: the type, or else its metadata alone.
func (d *decoder[T]) protobufItem(raw []byte, budget *ration.Budget) Item[T] {
	obj := d.empty()
	var size int
	err := tooHeavy(budget.Protobuf(d.scale, raw))
	if err == nil {
		err = guard(func() (err error) { size, err = d.unmarshal(obj, raw); return err })
	}
	if err == nil {
		return d.item(obj, size, raw, func() (identity, error) { return protobufIdentity(raw) })
	}
	id, idErr := protobufIdentity(raw)
	if id.ResourceVersion == "" && idErr != nil {
		id = identity{} // fields come in order: what was read may lack the namespace
	}
	item := broken[T](id, d.undecoded(err), d.undecoded(idErr))
	item.Metadata = d.protobufMetadata(raw)
	return item
}

// unmarshal reads raw into obj, and says how much of it. Managed fields are passed
// over: they are up to half of the bytes of an object.
func (d *decoder[T]) unmarshal(obj T, raw []byte) (size int, err error) {
	message, ok := any(obj).(protobufMessage)
	if !ok {
		return 0, fmt.Errorf("the server answered in protobuf, which %s cannot be read from", d.object)
	}
	meta := d.objectMeta(obj)
	if meta == nil {
		return len(raw), message.Unmarshal(raw)
	}
	before, metadata, after, err := cutField(raw, objectMetadata)
	if err != nil {
		return 0, err
	}
	head, _, tail, err := cutField(metadata, metaManagedFields)
	if err != nil {
		return 0, err
	}
	for _, part := range []struct {
		into  protobufMessage
		bytes []byte
	}{{message, before}, {meta, head}, {meta, tail}, {message, after}} {
		if len(part.bytes) == 0 {
			continue
		}
		if err := part.into.Unmarshal(part.bytes); err != nil {
			return 0, err
		}
		size += len(part.bytes)
	}
	return size, nil
}

// objectMeta is the metadata to be read apart from the rest of obj, nil when
// it is to be read with it.
func (d *decoder[T]) objectMeta(obj T) *metav1.ObjectMeta {
	if !d.plainMeta || d.keepManagedFields {
		return nil
	}
	accessor, ok := any(obj).(metav1.ObjectMetaAccessor)
	if !ok {
		return nil
	}
	meta, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	return meta
}

// jsonItem decodes one object: the type, or else its metadata alone. named:
// the object must name its kind. raw may be changed.
func (d *decoder[T]) jsonItem(raw []byte, named bool, budget *ration.Budget) Item[T] {
	if !d.keepManagedFields {
		raw = cutManagedFields(raw)
	}
	obj := d.empty()
	err := tooHeavy(budget.JSON(d.scale, raw))
	if err == nil {
		err = guard(func() error { return readJSON(raw, obj) })
	}
	if err == nil {
		apiVersion, kind := kindIn(obj)
		if d.isKind(apiVersion, kind) || kind == "" && !named {
			return d.item(obj, len(raw), raw, func() (identity, error) { return jsonIdentity(raw) })
		}
		id, idErr := jsonIdentity(raw)
		return d.stranger(id, apiVersion, kind, idErr)
	}
	id, idErr := jsonIdentity(raw)
	if apiVersion, kind := jsonKind(raw); kind != "" && !d.isKind(apiVersion, kind) {
		return d.stranger(id, apiVersion, kind, idErr)
	}
	item := broken[T](id, d.undecoded(err), d.undecoded(idErr))
	item.Metadata = d.jsonMetadata(raw)
	return item
}

// item finishes a decoded object. One without a name is not an object.
func (d *decoder[T]) item(obj T, size int, raw []byte, id func() (identity, error)) Item[T] {
	if obj.GetName() == "" {
		_, idErr := id()
		return broken[T](identity{}, errors.New("the object has no name"), idErr)
	}
	if !d.keepManagedFields {
		dropManagedFields(obj)
	}
	d.setKind(obj)
	return Item[T]{Key: KeyOf(obj), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Object: obj, Bytes: uint32(min(uint64(size), math.MaxUint32)), raw: raw}
}

// again decodes once more what item was decoded from.
func (d *decoder[T]) again(item Item[T]) (T, error) {
	switch {
	case len(item.raw) == 0:
		return item.Object, errors.New("what the object was decoded from is gone")
	case item.raw[0] == '{':
		item = d.jsonItem(item.raw, false, ration.Alone())
	default:
		item = d.protobufItem(item.raw, ration.Alone())
	}
	return item.Object, item.Err
}

// setKind sets apiVersion and kind, with strings that all objects share.
func (d *decoder[T]) setKind(obj T) {
	if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		meta.APIVersion, meta.Kind = d.apiVersion, d.kind.Kind
		return
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.Object["apiVersion"], u.Object["kind"] = d.apiVersionField, d.kindField
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(d.kind)
}

// stranger is the item of an object of another kind. One without a name may be
// any object, as one that cannot be read.
func (d *decoder[T]) stranger(id identity, apiVersion, kind string, idErr error) Item[T] {
	err := fmt.Errorf("the object is of kind %q, not %s", kind, d.kind.Kind)
	if kind == d.kind.Kind {
		err = fmt.Errorf("the object is a %s in %s, not in %s", kind, apiVersion, d.apiVersion)
	}
	item := broken[T](id, err, idErr)
	if !item.unreadable() {
		item.stranger = otherKind
	}
	return item
}

// broken is the item of an object that could not be decoded.
func broken[T Object](id identity, err, idErr error) Item[T] {
	if id.Name == "" {
		if idErr == nil {
			idErr = errors.New("it has no name")
		}
		return Item[T]{Err: fmt.Errorf("decode object whose metadata cannot be read: %w (metadata: %w)", err, idErr)}
	}
	return Item[T]{
		Key: Key{Namespace: id.Namespace, Name: id.Name},
		UID: types.UID(id.UID), ResourceVersion: id.ResourceVersion,
		Err: fmt.Errorf("decode object: %w", err),
	}
}

// guard turns a panic of a type's own decoding into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while decoding: %v", p)
		}
	}()
	return f()
}
