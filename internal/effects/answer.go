// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/internal/redact"
)

// Answer is the server's response, not yet decoded.
type Answer struct {
	Kind     schema.GroupVersionKind // as the answer says; may be empty
	Data     []byte                  // of the object, without envelope
	Protobuf bool
	Discreet bool // errors must not repeat the data
}

// ProtobufMessage is implemented by the generated types of k8s.io/api.
type ProtobufMessage interface {
	Reset()
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// ProtobufMagic begins each message of the API's protobuf encoding, followed by a
// runtime.Unknown.
const ProtobufMagic = "k8s\x00"

// Open parses the envelope of an answer.
func Open(contentType string, body []byte) (Answer, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return Answer{}, fmt.Errorf("read the answer's content type %q: %w", contentType, err)
	}
	if media != runtime.ContentTypeProtobuf {
		a := Answer{Data: body}
		if len(body) == 0 {
			return a, nil
		}
		var kind runtime.TypeMeta
		if err := readKind(body, &kind); err != nil {
			return a, fmt.Errorf("read the answer: %w", err)
		}
		a.Kind = schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		return a, nil
	}
	if !bytes.HasPrefix(body, []byte(ProtobufMagic)) {
		return Answer{}, errors.New("read the answer: its content type is protobuf, but it does not begin as protobuf does")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body[len(ProtobufMagic):]); err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return Answer{Kind: envelope.GroupVersionKind(), Data: envelope.Raw, Protobuf: true}, nil
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

// Is reports whether the answer holds the kind. An answer without a kind, such as an
// item of a list, is taken to be of the requested kind.
func (a Answer) Is(kind schema.GroupVersionKind) bool {
	return a.Kind.Kind == "" || a.Kind == kind
}

// Into decodes the answer into obj, which must be empty, and sets its kind.
func (a Answer) Into(obj runtime.Object, kind schema.GroupVersionKind) error {
	err := a.Decode(obj)
	if a.Discreet {
		err = redact.Decoding(err)
	}
	if err != nil {
		return fmt.Errorf("decode the answer into %T: %w", obj, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// fits returns an error if decoding the answer into obj would allocate too much: a few
// bytes can become a large object.
func (a Answer) fits(obj any) error {
	if len(a.Data) <= unweighed {
		return nil
	}
	scale := decodelimit.Of(reflect.TypeOf(obj))
	if _, ok := obj.(*unstructured.Unstructured); ok {
		scale = decodelimit.Tree()
	}
	if a.Protobuf {
		return tooHeavy(decodelimit.Alone().Protobuf(scale, a.Data))
	}
	return tooHeavy(decodelimit.Alone().JSON(scale, a.Data))
}

// unweighed is the size up to which no answer can decode to a large object.
const unweighed = 64 << 10

// tooHeavy converts a *decodelimit.TooHeavyError to a *TooLargeError and returns any other
// error unchanged.
func tooHeavy(err error) error {
	if heavy, ok := errors.AsType[*decodelimit.TooHeavyError](err); ok {
		return &bodylimit.TooLargeError{Limit: heavy.Limit, Decoded: heavy.Bytes}
	}
	return err
}

// Decode decodes the answer into obj.
func (a Answer) Decode(obj any) error {
	if err := a.fits(obj); err != nil {
		return err
	}
	if a.Protobuf {
		message, ok := obj.(ProtobufMessage)
		if !ok {
			return errors.New("the answer is protobuf, which the type cannot read")
		}
		if err := decodelimit.CostlyPlanOf(reflect.TypeOf(obj)).Protobuf(a.Data); err != nil {
			return err
		}
		return message.Unmarshal(a.Data)
	}
	if len(a.Data) == 0 {
		return errors.New("the answer is empty")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return kjson.UnmarshalCaseSensitivePreserveInts(a.Data, &u.Object)
	}
	if err := decodelimit.CostlyPlanOf(reflect.TypeOf(obj)).JSON(a.Data); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(a.Data, obj)
}
