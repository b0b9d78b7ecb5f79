// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
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
	"github.com/flyball-dev/flyball/internal/ration"
)

// answer is what the server sent back, not yet decoded.
type answer struct {
	kind     schema.GroupVersionKind // as the answer says; may be empty
	data     []byte                  // of the object, without envelope
	protobuf bool
	discreet bool // errors do not repeat what is in data
}

// protobufMessage is what the generated types of k8s.io/api have.
type protobufMessage interface {
	Reset()
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// protobufMagic begins each message of the API's protobuf encoding; a
// runtime.Unknown follows.
const protobufMagic = "k8s\x00"

// speaksProtobuf holds for built-in kinds. A type of a custom resource may
// have the methods too, but the server takes those kinds in JSON only.
func speaksProtobuf(obj runtime.Object) bool {
	if _, ok := obj.(protobufMessage); !ok {
		return false
	}
	pkg := reflect.TypeOf(obj).Elem().PkgPath()
	return strings.HasPrefix(pkg, "k8s.io/api/")
}

// open reads the envelope of an answer.
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
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &kind); err != nil {
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

// is says whether the answer holds the kind. An answer that does not say what
// it is, as items of lists, is what was asked for.
func (a answer) is(kind schema.GroupVersionKind) bool {
	return a.kind.Kind == "" || a.kind == kind
}

// into decodes the answer into obj, which must be empty, and notes its kind.
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

// fits weighs the answer before it is decoded into obj: a few bytes can become a large
// object.
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

// unweighed answers cannot become too large, whatever is in them.
const unweighed = 64 << 10

// tooHeavy is err, as a *TooLargeError where it is of the weight.
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

// encode gives the body and content type of a write of obj, which is left as
// it is.
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

// empty makes a new object of the Go type of like.
func empty[T runtime.Object](like T) T {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(T)
}

// shallow copies the top of obj, so that its kind can be set without touching
// the caller's.
func shallow[T runtime.Object](obj T) T {
	to := empty(obj)
	fill(to, obj)
	return to
}

// fill makes obj what from is. The whole value is replaced: decoding over an
// object that is not empty would keep map entries that the server has removed.
func fill(obj, from runtime.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from).Elem())
}

// whole makes an empty object that can hold all of the kind, for the Observer:
// of the Go type of like, of the scheme's if like cannot, else unstructured.
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
