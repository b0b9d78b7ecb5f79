// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// response is the server's response, not yet decoded.
type response = effects.Answer

var metadataKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")

// readAnswer handles the answer to a write of the object itself: it stores the answer in
// obj, and passes the Observer a copy that is not shared. obj is nil if the caller has
// no object to fill.
func (c *Client) readAnswer(at *call, a response, obj kube.Object) error {
	want := at.kind
	if !isNil(obj) && metadataOnly(obj) {
		want = metadataKind
	}
	switch {
	case !a.Is(want):
		c.observe(at, at.effect().TouchedBy(a))
		return nil
	case isNil(obj) && !c.watched(at):
		return nil
	case isNil(obj):
		obj = c.whole(nil, at.kind)
	}
	got := empty(obj)
	if err := a.Into(got, at.kind); err != nil {
		c.observe(at, at.effect().Touched())
		return at.wrap(err)
	}
	if c.watched(at) {
		c.observe(at, effects.Changed(at.kind, kube.Copy(got), a))
	}
	fill(obj, got)
	return nil
}

// whole returns an empty object that can hold the full kind, for the Observer: of the
// Go type of like, else of the type in the scheme, else unstructured.
func (c *Client) whole(like kube.Object, kind schema.GroupVersionKind) kube.Object {
	if !isNil(like) && !metadataOnly(like) {
		return empty(like)
	}
	if typed, err := c.scheme.New(kind); err == nil {
		if obj, ok := typed.(kube.Object); ok {
			return obj
		}
	}
	return &unstructured.Unstructured{}
}

// empty returns a new object of the Go type of like.
func empty[T runtime.Object](like T) T {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(T)
}

// fill sets obj to the value of from. It replaces the whole value: decoding over a
// non-empty object would keep map entries that the server has removed.
func fill(obj, from runtime.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from).Elem())
}

// discreet reports whether errors and logs must not repeat what the call sends or
// receives.
func (at *call) discreet() bool { return redact.Kind(at.kind.GroupKind(), at.sub) }

// answered removes confidential content from an error of the server.
func (at *call) answered(err error) error {
	if err == nil || !at.discreet() {
		return err
	}
	return redact.Error(err)
}
