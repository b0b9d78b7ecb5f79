// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/jsonplan"
	"github.com/flyball-dev/flyball/informer/internal/protoplan"
	"github.com/flyball-dev/flyball/informer/internal/share"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// Decoder decodes objects of one kind, each separately. Safe for concurrent
// use.
type Decoder struct {
	kind            schema.GroupVersionKind
	apiVersion      string
	apiVersionField any // both as values of an unstructured object
	kindField       any
	object          reflect.Type // of the objects
	protobuf        bool         // it supports protobuf
	plainMeta       bool         // it embeds ObjectMeta as its field 1
	metadataOnly    bool
	kept            Kept
	scale           *decodelimit.Scale
	plans           *plans
	screen          *encoding.ShardScreen  // nil: objects of all shards are held
	json            func() *jsonplan.Plan  // nil: by the reference
	proto           func() *protoplan.Plan // nil: by the type's own method
}

// protobufMessage is implemented by the generated types of built-in kinds.
type protobufMessage interface {
	Unmarshal(data []byte) error
}

// NewDecoder returns a decoder of objects of kind into t, a pointer to a
// struct, whose pointer is an object. Nobody may modify the objects: they
// share parts.
func NewDecoder(t reflect.Type, kind schema.GroupVersionKind, keepManagedFields bool) (*Decoder, error) {
	return newDecoder(t, kind, Kept{ManagedFields: keepManagedFields, Parts: true}, newPlans())
}

func newDecoder(t reflect.Type, kind schema.GroupVersionKind, kept Kept, plans *plans) (*Decoder, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("decode %s: %s is not a pointer to an API type", kind.Kind, t)
	}
	d := &Decoder{object: t.Elem(), kept: kept, metadataOnly: OfMetadata(t), scale: decodelimit.Of(t), plans: plans}
	if t == UnstructuredType {
		d.scale = decodelimit.Tree()
	}
	d.setDecoded(kind)
	_, d.protobuf = any(d.empty()).(protobufMessage)
	meta, ok := d.object.FieldByName("ObjectMeta")
	d.plainMeta = ok && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() &&
		strings.HasPrefix(meta.Tag.Get("protobuf"), "bytes,1,")
	d.setPlans()
	return d, nil
}

// setPlans sets the plans for what d keeps, which are compiled when they are
// needed.
func (d *Decoder) setPlans() {
	plans, t, sel, managed := d.plans, d.object, d.kept.Fields, d.kept.ManagedFields
	d.json = sync.OnceValue(func() *jsonplan.Plan { return plans.json(t, sel, managed) })
	d.proto = sync.OnceValue(func() *protoplan.Plan { return plans.protobuf(t, sel) })
}

func (d *Decoder) setDecoded(kind schema.GroupVersionKind) {
	d.kind, d.apiVersion = kind, kind.GroupVersion().String()
	d.apiVersionField, d.kindField = d.apiVersion, kind.Kind
}

// ofKind returns d for objects of kind.
func (d *Decoder) ofKind(kind schema.GroupVersionKind) *Decoder {
	if d.kind == kind {
		return d
	}
	other := *d
	other.setDecoded(kind)
	return &other
}

func (d *Decoder) empty() kube.Object {
	return reflect.New(d.object).Interface().(kube.Object)
}

// notAList returns the Status in body as an error, or one that says what body
// is.
func (d *Decoder) notAList(apiVersion, kind string, body []byte) error {
	if status, ok := decodeStatus(body); ok {
		return &apierrors.StatusError{ErrStatus: status}
	}
	if kind == d.kind.Kind+"List" && !d.isVersion(apiVersion) {
		return fmt.Errorf("the answer is a list of %s in %s, not in %s", d.kind.Kind, apiVersion, d.apiVersion)
	}
	return fmt.Errorf("the answer is of kind %q, not a list of %s", kind, d.kind.Kind)
}

// IsUnreadable reports whether not even the object's name could be read.
func IsUnreadable(i listwatch.Item[kube.Object]) bool { return i.Err != nil && i.Key.Name == "" }

// protobufItem decodes one object, or if that fails its metadata.
func (d *Decoder) protobufItem(raw []byte, budget *decodelimit.Budget) listwatch.Item[kube.Object] {
	d.kept.Owners.see(raw)
	err := encoding.TooHeavy(budget.Protobuf(d.scale, raw))
	if err == nil {
		var item listwatch.Item[kube.Object]
		if err = encoding.Guard(func() (err error) { item, err = d.unmarshal(raw); return err }); err == nil {
			return item
		}
	}
	id, idErr := encoding.ProtobufIdentity(raw)
	if id.ResourceVersion == "" && idErr != nil {
		id = encoding.Identity{} // fields are ordered: the namespace may be missing
	}
	item := broken(id, d.undecoded(err), d.undecoded(idErr))
	item.Metadata = d.protobufMetadata(raw)
	return item
}

// unmarshal decodes raw by the plan, or as the type does if the plan does not
// read it.
func (d *Decoder) unmarshal(raw []byte) (item listwatch.Item[kube.Object], err error) {
	identity := func() (encoding.Identity, error) { return encoding.ProtobufIdentity(raw) }
	if obj, sizes, ok := d.byPlan(raw); ok {
		item = d.item(obj, len(raw)-int(sizes.Skipped), raw, identity)
		item.Heap = sizes.Own
		return item, nil
	}
	obj := d.empty()
	size, err := d.unmarshalInto(obj, raw)
	if err != nil {
		return item, err
	}
	d.leaveOut(obj)
	return d.item(obj, size, raw, identity), nil
}

// byPlan decodes raw by the plan. It returns false if there is none, or if it
// does not read raw.
func (d *Decoder) byPlan(raw []byte) (obj kube.Object, sizes protoplan.Sizes, ok bool) {
	plan := d.proto()
	if plan == nil || !d.protobuf {
		return obj, sizes, false
	}
	obj = d.empty()
	opts := protoplan.Options{Table: d.table(), OnlyStrings: !d.kept.Parts, ManagedFields: d.kept.ManagedFields}
	sizes, err := plan.Decode(raw, obj, opts)
	if err == nil && d.kept.Parts && d.kept.Checked {
		opts.Table = nil
		err = d.check(obj, func(alone kube.Object) (err error) { sizes, err = plan.Decode(raw, alone, opts); return err })
	}
	return obj, sizes, err == nil
}

// table returns the parts that objects share, or nil.
func (d *Decoder) table() *share.Table {
	if d.kept.Alone {
		return nil
	}
	return d.plans.table
}

// check compares obj with what decode makes of its bytes without shared parts.
// If they differ, code has modified a part: obj gets what its bytes mean, and
// later objects do not get the part.
func (d *Decoder) check(obj kube.Object, decode func(kube.Object) error) error {
	alone := d.empty()
	if err := decode(alone); err != nil {
		return err
	}
	if !reflect.DeepEqual(obj, alone) {
		d.plans.table.Reset()
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(alone).Elem())
	}
	return nil
}

// unmarshalInto decodes raw into obj by the type's own method and returns how
// many bytes it used. It skips managed fields, which are up to half of an
// object.
func (d *Decoder) unmarshalInto(obj kube.Object, raw []byte) (size int, err error) {
	message, ok := any(obj).(protobufMessage)
	if !ok {
		return 0, fmt.Errorf("the server answered in protobuf, which %s cannot be read from", d.object)
	}
	if err := decodelimit.CostlyPlanOf(reflect.TypeOf(obj)).Protobuf(raw); err != nil {
		return 0, err
	}
	meta := d.objectMeta(obj)
	if meta == nil {
		return len(raw), message.Unmarshal(raw)
	}
	before, metadata, after, err := encoding.CutField(raw, encoding.ObjectMetadata)
	if err != nil {
		return 0, err
	}
	head, _, tail, err := encoding.CutField(metadata, encoding.MetaManagedFields)
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

// objectMeta returns the metadata of obj if it is decoded separately, else nil.
func (d *Decoder) objectMeta(obj kube.Object) *metav1.ObjectMeta {
	if !d.plainMeta || d.kept.ManagedFields {
		return nil
	}
	accessor, ok := any(obj).(metav1.ObjectMetaAccessor)
	if !ok {
		return nil
	}
	meta, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	return meta
}

// jsonItem decodes one object, or if that fails its metadata. named: the object
// must name its kind. It may modify raw.
func (d *Decoder) jsonItem(raw []byte, named bool, budget *decodelimit.Budget) listwatch.Item[kube.Object] {
	d.kept.Owners.see(raw)
	if !d.kept.ManagedFields {
		raw = encoding.CutManagedFields(raw)
	}
	obj := d.empty()
	var sizes jsonplan.Sizes
	err := encoding.TooHeavy(budget.JSON(d.scale, raw))
	if err == nil {
		err = encoding.Guard(func() (err error) { sizes, err = d.readJSON(raw, obj); return err })
	}
	if err == nil {
		apiVersion, kind := kindIn(obj)
		if d.isKind(apiVersion, kind) || kind == "" && !named {
			item := d.item(obj, len(raw), raw, func() (encoding.Identity, error) { return encoding.JSONIdentity(raw) })
			item.Heap = sizes.Own
			return item
		}
		id, idErr := encoding.JSONIdentity(raw)
		return d.stranger(id, apiVersion, kind, idErr)
	}
	id, idErr := encoding.JSONIdentity(raw)
	if apiVersion, kind := encoding.JSONKind(raw); kind != "" && !d.isKind(apiVersion, kind) {
		return d.stranger(id, apiVersion, kind, idErr)
	}
	item := broken(id, d.undecoded(err), d.undecoded(idErr))
	item.Metadata = d.jsonMetadata(raw)
	return item
}

// leaveOut removes from obj what is not kept.
func (d *Decoder) leaveOut(obj kube.Object) {
	if !d.kept.ManagedFields {
		dropManagedFields(obj)
	}
	fields.Prune(obj, d.kept.Fields)
}

// item completes a decoded object. An object without a name is an error.
func (d *Decoder) item(obj kube.Object, size int, raw []byte, id func() (encoding.Identity, error)) listwatch.Item[kube.Object] {
	if obj.GetName() == "" {
		_, idErr := id()
		return broken(encoding.Identity{}, errors.New("the object has no name"), idErr)
	}
	if d.kept.Fields != nil {
		ownVersion(obj)
		raw = nil // it is more than the object
	}
	d.setKind(obj)
	return listwatch.Item[kube.Object]{Key: kube.KeyOf(obj), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Object: obj, Bytes: uint32(min(uint64(size), math.MaxUint32)), Notes: base.Notes[kube.Object]{Raw: raw}}
}

// Again decodes item's bytes again.
func (d *Decoder) Again(item listwatch.Item[kube.Object]) (kube.Object, error) {
	if len(item.Raw) == 0 {
		return item.Object, errors.New("the bytes that the object was decoded from are no longer available")
	}
	item = d.again(item.Raw)
	return item.Object, item.Err
}

// again decodes the Raw of an item.
func (d *Decoder) again(raw []byte) listwatch.Item[kube.Object] {
	if raw[0] == '{' {
		return d.jsonItem(raw, false, decodelimit.Alone())
	}
	return d.protobufItem(raw, decodelimit.Alone())
}

// setKind sets apiVersion and kind to strings shared by all objects.
func (d *Decoder) setKind(obj kube.Object) {
	if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		if d.kept.OmitKind && !d.metadataOnly {
			*meta = metav1.TypeMeta{}
			return
		}
		meta.APIVersion, meta.Kind = d.apiVersion, d.kind.Kind
		return
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.Object["apiVersion"], u.Object["kind"] = d.apiVersionField, d.kindField
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(d.kind)
}

// stranger returns the item of an object of another kind. Without a name it
// counts as unreadable, since it may be any object.
func (d *Decoder) stranger(id encoding.Identity, apiVersion, kind string, idErr error) listwatch.Item[kube.Object] {
	err := fmt.Errorf("the object is of kind %q, not %s", kind, d.kind.Kind)
	if kind == d.kind.Kind {
		err = fmt.Errorf("the object is a %s in %s, not in %s", kind, apiVersion, d.apiVersion)
	}
	item := broken(id, err, idErr)
	if !IsUnreadable(item) {
		item.Anomaly = base.OtherKind
	}
	return item
}

// broken returns the item of an undecodable object.
func broken(id encoding.Identity, err, idErr error) listwatch.Item[kube.Object] {
	if id.Name == "" {
		if idErr == nil {
			idErr = errors.New("it has no name")
		}
		return listwatch.Item[kube.Object]{Err: fmt.Errorf("decode object whose metadata cannot be read: %w (metadata: %w)", err, idErr)}
	}
	return listwatch.Item[kube.Object]{
		Key: kube.Key{Namespace: id.Namespace, Name: id.Name},
		UID: types.UID(id.UID), ResourceVersion: id.ResourceVersion,
		Err: fmt.Errorf("decode object: %w", err),
	}
}

// Kept is what of the objects a ListerWatcher keeps, and how. The zero Kept is
// all fields but managedFields, in objects that may be modified.
type Kept struct {
	ManagedFields bool
	Fields        *fields.Set // nil: all
	// Parts: nobody modifies the objects, so they share parts with others.
	// Without, they share only strings.
	Parts bool
	// Alone: the objects are soon let go, or transformed, so they share nothing.
	Alone bool
	// Grafted: a Grafter makes them share parts when they have been transformed.
	Grafted bool
	// OmitKind leaves apiVersion and kind of objects of Go types empty.
	OmitKind bool
	// Checked: a shared part is compared with what its bytes mean before an
	// object gets it, for tests.
	Checked bool
	// Owners sees the managedFields of what is decoded. Nil: nobody asks for them.
	Owners *Owners
	// Foreign counts the objects of shards that are not held. Nil: nobody asks for them.
	Foreign *Foreign
}

// keeping returns d for objects of which that is kept.
func (d *Decoder) keeping(what Kept) *Decoder {
	if d.kept == what {
		return d
	}
	other := *d
	other.kept = what
	other.setPlans()
	return &other
}
