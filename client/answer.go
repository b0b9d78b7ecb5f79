// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/confidential"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/internal/ration"
)

// answer is the server's response, not yet decoded.
type answer struct {
	kind     schema.GroupVersionKind // as the answer says; may be empty
	data     []byte                  // of the object, without envelope
	protobuf bool
	discreet bool // errors must not repeat the data
}

// protobufMessage is implemented by the generated types of k8s.io/api.
type protobufMessage interface {
	Reset()
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// protobufMagic begins each message of the API's protobuf encoding, followed by a
// runtime.Unknown.
const protobufMagic = "k8s\x00"

// speaksProtobuf reports whether obj is of a built-in kind. A custom resource's type
// may have the methods too, but the server accepts custom resources only as JSON.
func speaksProtobuf(obj runtime.Object) bool {
	if _, ok := obj.(protobufMessage); !ok {
		return false
	}
	pkg := reflect.TypeOf(obj).Elem().PkgPath()
	return strings.HasPrefix(pkg, "k8s.io/api/")
}

// open parses the envelope of an answer.
func open(contentType string, body []byte) (answer, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return answer{}, fmt.Errorf("read the answer's content type %q: %w", contentType, err)
	}
	if media != runtime.ContentTypeProtobuf {
		a := answer{data: body}
		if len(body) == 0 {
			return a, nil
		}
		var kind runtime.TypeMeta
		if err := readKind(body, &kind); err != nil {
			return a, fmt.Errorf("read the answer: %w", err)
		}
		a.kind = schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		return a, nil
	}
	if !bytes.HasPrefix(body, []byte(protobufMagic)) {
		return answer{}, errors.New("read the answer: its content type is protobuf, but it does not begin as protobuf does")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body[len(protobufMagic):]); err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return answer{kind: envelope.GroupVersionKind(), data: envelope.Raw, protobuf: true}, nil
}

// readKind reads the kind of an object, even if other parts of it are invalid JSON.
func readKind(body []byte, kind *runtime.TypeMeta) error {
	var bad error
	read := func(value []byte, to *string) bool {
		*to = ""
		bad = kjson.UnmarshalCaseSensitivePreserveInts(value, to)
		return bad == nil
	}
	err := jsonspan.EachMember(body, func(key []byte, start, end int) bool {
		switch string(key) {
		case "apiVersion":
			return read(body[start:end], &kind.APIVersion)
		case "kind":
			return read(body[start:end], &kind.Kind)
		}
		return true
	})
	if err != nil {
		return cmp.Or(kjson.UnmarshalCaseSensitivePreserveInts(body, kind), err) // the decoder says more
	}
	return bad
}

// is reports whether the answer holds the kind. An answer without a kind, such as an
// item of a list, is taken to be of the requested kind.
func (a answer) is(kind schema.GroupVersionKind) bool {
	return a.kind.Kind == "" || a.kind == kind
}

// into decodes the answer into obj, which must be empty, and sets its kind.
func (a answer) into(obj runtime.Object, kind schema.GroupVersionKind) error {
	err := a.decode(obj)
	if a.discreet {
		err = confidential.Decoding(err)
	}
	if err != nil {
		return fmt.Errorf("decode the answer into %T: %w", obj, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// fits returns an error if decoding the answer into obj would allocate too much: a few
// bytes can become a large object.
func (a answer) fits(obj any) error {
	if len(a.data) <= unweighed {
		return nil
	}
	scale := ration.Of(reflect.TypeOf(obj))
	if _, ok := obj.(*unstructured.Unstructured); ok {
		scale = ration.Tree()
	}
	if a.protobuf {
		return tooHeavy(ration.Alone().Protobuf(scale, a.data))
	}
	return tooHeavy(ration.Alone().JSON(scale, a.data))
}

// unweighed is the size up to which no answer can decode to a large object.
const unweighed = 64 << 10

// tooHeavy converts a *ration.TooHeavyError to a *TooLargeError and returns any other
// error unchanged.
func tooHeavy(err error) error {
	if heavy, ok := errors.AsType[*ration.TooHeavyError](err); ok {
		return &TooLargeError{Limit: heavy.Limit, Decoded: heavy.Bytes}
	}
	return err
}

func (a answer) decode(obj any) error {
	if err := a.fits(obj); err != nil {
		return err
	}
	if a.protobuf {
		message, ok := obj.(protobufMessage)
		if !ok {
			return errors.New("the answer is protobuf, which the type cannot read")
		}
		return message.Unmarshal(a.data)
	}
	if len(a.data) == 0 {
		return errors.New("the answer is empty")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return kjson.UnmarshalCaseSensitivePreserveInts(a.data, &u.Object)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(a.data, obj)
}

// encode returns the body and content type of a write of obj. It does not modify obj.
func encode(obj informer.Object, kind schema.GroupVersionKind, protobuf bool) (body []byte, contentType string, err error) {
	if metadataOnly(obj) {
		return nil, "", errors.New("an object known by its metadata alone cannot be written whole; use Patch")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		body, err = json.Marshal(u.Object)
		return body, runtime.ContentTypeJSON, err
	}
	obj = shallow(obj)
	obj.GetObjectKind().SetGroupVersionKind(kind)
	if !protobuf {
		body, err = json.Marshal(obj)
		return body, runtime.ContentTypeJSON, err
	}
	raw, err := obj.(protobufMessage).Marshal()
	if err != nil {
		return nil, "", err
	}
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
		Raw:      raw,
	}
	message, err := envelope.Marshal()
	if err != nil {
		return nil, "", err
	}
	return append([]byte(protobufMagic), message...), runtime.ContentTypeProtobuf, nil
}

// empty returns a new object of the Go type of like.
func empty[T runtime.Object](like T) T {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(T)
}

// shallow returns a shallow copy of obj, so that its kind can be set without changing
// the caller's object.
func shallow[T runtime.Object](obj T) T {
	to := empty(obj)
	fill(to, obj)
	return to
}

// fill sets obj to the value of from. It replaces the whole value: decoding over a
// non-empty object would keep map entries that the server has removed.
func fill(obj, from runtime.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from).Elem())
}

// whole returns an empty object that can hold the full kind, for the Observer: of the
// Go type of like, else of the type in the scheme, else unstructured.
func (c *Client) whole(like informer.Object, kind schema.GroupVersionKind) informer.Object {
	if !isNil(like) && !metadataOnly(like) {
		return empty(like)
	}
	if typed, err := c.scheme.New(kind); err == nil {
		if obj, ok := typed.(informer.Object); ok {
			return obj
		}
	}
	return &unstructured.Unstructured{}
}

var metadataKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
