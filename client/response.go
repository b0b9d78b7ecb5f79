// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/effects"
)

// response is the server's response, not yet decoded.
type response = effects.Answer

var metadataKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")

// speaksProtobuf reports whether obj is of a built-in kind. A custom resource's type
// may have the methods too, but the server accepts custom resources only as JSON.
func speaksProtobuf(obj runtime.Object) bool {
	if _, ok := obj.(effects.ProtobufMessage); !ok {
		return false
	}
	pkg := reflect.TypeOf(obj).Elem().PkgPath()
	return strings.HasPrefix(pkg, "k8s.io/api/")
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
	raw, err := obj.(effects.ProtobufMessage).Marshal()
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
	return append([]byte(effects.ProtobufMagic), message...), runtime.ContentTypeProtobuf, nil
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
