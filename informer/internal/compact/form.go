// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/kube"
)

// form encodes and decodes objects of one type: in protobuf if the type has it,
// else in JSON.
type form struct {
	kind     Kind
	protobuf bool
	// exact: what was encoded decodes to the same object. It is so for
	// protobuf, save for empty slices and maps, which become nil.
	exact     bool
	plainMeta bool // the type has ObjectMeta as its field 1 in protobuf
}

// message is a type of a built-in kind.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func formOf(kind Kind) form {
	f := form{kind: kind}
	_, f.protobuf = reflect.New(kind.Object.Elem()).Interface().(message)
	f.exact = f.protobuf
	if meta, ok := kind.Object.Elem().FieldByName("ObjectMeta"); f.protobuf && ok {
		f.plainMeta = meta.Type == reflect.TypeFor[metav1.ObjectMeta]() && strings.HasPrefix(meta.Tag.Get("protobuf"), "bytes,1,")
	}
	return f
}

// Without a decoder of the informer, protobuf begins with one of these: the
// bytes do not have the kind.
const (
	kindless = 'P' // the object has no apiVersion and kind
	ofKind   = 'K' // it has those of the Kind
)

func (f form) encode(obj kube.Object) ([]byte, error) {
	switch m := any(obj).(type) {
	case *unstructured.Unstructured:
		return json.Marshal(m.Object)
	case message:
		if f.kind.Decode != nil {
			return m.Marshal()
		}
		first := byte(kindless)
		if gvk := obj.GetObjectKind().GroupVersionKind(); gvk == f.kind.Name() {
			first = ofKind
		} else if !gvk.Empty() {
			return nil, errors.New("the object is of another kind")
		}
		raw, err := m.Marshal()
		return append([]byte{first}, raw...), err
	}
	return json.Marshal(obj)
}

func (f form) decode(raw []byte) (kube.Object, error) {
	if f.kind.Decode != nil {
		return f.kind.Decode(raw)
	}
	if len(raw) == 0 {
		return nil, errors.New("there are no bytes")
	}
	obj, ok := reflect.New(f.kind.Object.Elem()).Interface().(kube.Object)
	if !ok {
		return nil, errors.New("the type is not an API type")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return obj, kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object)
	}
	m, ok := obj.(message)
	if !ok || raw[0] == '{' {
		return obj, kjson.UnmarshalCaseSensitivePreserveInts(raw, obj)
	}
	err := m.Unmarshal(raw[1:])
	if raw[0] == ofKind {
		obj.GetObjectKind().SetGroupVersionKind(f.kind.Name())
	}
	return obj, err
}

// Alike reports whether two objects have the same content. Packed ones are
// opened; what cannot be opened is like nothing.
func Alike(a, b kube.Object) (equal bool) {
	a, errA := Open(a)
	b, errB := Open(b)
	if errA != nil || errB != nil {
		return false
	}
	defer func() {
		if recover() != nil { // the type has unexported fields
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// withoutManagedFields returns an object in protobuf without its
// managedFields. JSON and what is not as expected are returned unchanged.
func withoutManagedFields(raw []byte) []byte {
	if len(raw) == 0 || raw[0] == '{' {
		return raw
	}
	before, metadata, after, err := encoding.CutField(raw, encoding.ObjectMetadata)
	if err != nil {
		return raw
	}
	head, managed, tail, err := encoding.CutField(metadata, encoding.MetaManagedFields)
	if err != nil || len(managed) == 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	out = append(out, before...)
	out = protowire.AppendTag(out, encoding.ObjectMetadata, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(len(head)+len(tail)))
	out = append(out, head...)
	out = append(out, tail...)
	return append(out, after...)
}
