// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// encoder writes answers about one kind in the form that was asked for.
type encoder struct {
	kind           *Kind // nil: only Status
	protobuf, yaml bool  // else JSON
	pretty         bool  // JSON for a person to read
	as             string
	version        string                     // of the group of as
	include        metav1.IncludeObjectPolicy // what a row of a table has of its object
	unacceptable   bool                       // no form was asked for that there is
	cache          *encodings
	fragments      *fragments // of the many objects that are being encoded; nil: they are few
	passing        bool       // they are too many to be kept
}

func (e encoder) contentType() string {
	switch {
	case e.protobuf:
		return contentProtobuf
	case e.yaml:
		return contentYAML
	}
	return contentJSON
}

// streamType is the content type of a watch.
func (e encoder) streamType() string {
	if e.protobuf {
		return contentProtobuf + streamed
	}
	return contentJSON
}

// spelled is a body of JSON in the form that was asked for. Protobuf is itself.
func (e encoder) spelled(body []byte, err error) ([]byte, error) {
	switch {
	case err != nil || e.protobuf:
		return body, err
	case e.yaml:
		return yaml.JSONToYAML(body)
	case e.pretty:
		var out bytes.Buffer
		err := json.Indent(&out, body, "", "  ")
		return out.Bytes(), err
	}
	return append(body, '\n'), nil
}

// object is an answer of one object.
func (e encoder) object(obj *object.Object) ([]byte, error) {
	switch e.as {
	case asMetadataList:
		return nil, errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is not a list (%s)", e.as, e.kind.internalType()))
	case asTable:
		return e.spelled(e.table([]*object.Object{obj}, metav1.ListMeta{ResourceVersion: obj.Meta().GetResourceVersion()}, true))
	}
	return e.spelled(e.single(obj))
}

// single is one object with its kind. Nobody but the caller has the bytes.
func (e encoder) single(obj *object.Object) ([]byte, error) {
	var to []byte
	if known := obj.Encoded.Load().In(e.kind, e.form()); known != nil && !e.protobuf {
		to = make([]byte, 0, known.Size+len(e.kind.Kind)+len(e.kind.Group)+64)
	}
	return e.appendSingle(to, obj)
}

// appendSingle appends one object with its kind.
func (e encoder) appendSingle(to []byte, obj *object.Object) ([]byte, error) {
	switch {
	case e.protobuf:
		content, err := e.content(obj)
		if err != nil {
			return to, err
		}
		version, kind := e.kind.GroupVersion().String(), e.kind.Kind
		if e.as != "" {
			version, kind = e.metaVersion(), asMetadata
		}
		before, after, err := envelopeAround(version, kind, len(content))
		to = slices.Grow(to, len(before)+len(content)+len(after))
		return append(append(append(to, before...), content...), after...), err
	case e.as != "":
		return e.appendContent(to, obj)
	}
	return e.appendWithKind(to, obj)
}

// appendWithKind appends the JSON of an object with its kind in front.
func (e encoder) appendWithKind(to []byte, obj *object.Object) ([]byte, error) {
	to = append(to, `{"kind":"`...)
	to = append(to, e.kind.Kind...)
	to = append(to, `","apiVersion":"`...)
	to = append(to, e.kind.GroupVersion().String()...)
	to = append(to, '"')
	brace := len(to)
	to, err := e.appendContent(to, obj)
	switch {
	case err != nil:
	case len(to) == brace+len("{}"):
		to = append(to[:brace], '}')
	default:
		to[brace] = ','
	}
	return to, err
}

// content is an object without its kind: in protobuf the message alone. It is
// shared.
func (e encoder) content(obj *object.Object) ([]byte, error) {
	return e.keeps().encoded(obj, e.kind, e.form(), func() ([]byte, error) { return e.appendAnew(nil, obj) })
}

func (e encoder) form() object.ContentForm {
	return object.ContentForm{Protobuf: e.protobuf, As: e.as, Version: e.version}
}

// keeps is where the forms of e's objects are kept; nil: nowhere.
func (e encoder) keeps() *encodings {
	if f := e.kind.family; f != nil && f.asked && f.storage != e.kind {
		return nil // the webhook may say something else the next time
	}
	return e.cache
}

// appendContent appends the content of an object. What is encoded for it is
// kept unless there is too much of it.
func (e encoder) appendContent(to []byte, obj *object.Object) ([]byte, error) {
	if !e.passing || e.keeps() == nil {
		content, err := e.content(obj)
		return append(to, content...), err
	}
	if content := obj.Encoded.Load().In(e.kind, e.form()).Kept(); content != nil {
		return append(to, content...), nil
	}
	return e.appendAnew(to, obj)
}

func (e encoder) appendAnew(to []byte, obj *object.Object) ([]byte, error) {
	if e.as != "" {
		content, err := e.metadata(obj)
		return append(to, content...), err
	}
	obj, err := e.kind.of(obj)
	if err != nil {
		return to, err
	}
	obj = e.kind.shown(obj)
	known := e.fragments.tryOpen()
	defer known.close()
	if e.protobuf {
		return e.appendMessage(to, obj, known)
	}
	return e.cache.appendText(to, obj, known)
}

// forMany is e for so many objects, of which one is first, to encode one after
// the other, in a list or in its pages.
func (e encoder) forMany(objects int, first func() *object.Object) encoder {
	if e.keeps() == nil || objects < fragmentsFrom || e.as == asTable {
		return e
	}
	e.fragments = &e.cache.fragments
	if content, err := e.content(first()); err == nil {
		e.passing = objects*len(content) > e.cache.bound()/2
	}
	return e
}

// status is a Status.
func (e encoder) status(status metav1.Status) ([]byte, error) {
	status.Kind, status.APIVersion = "Status", "v1"
	if e.protobuf {
		raw, err := status.Marshal()
		if err != nil {
			return nil, err
		}
		return envelope("v1", "Status", raw)
	}
	return e.spelled(json.Marshal(status))
}

// event appends one frame of a watch: its length in front, or a line.
func (e encoder) event(to []byte, f frame, first bool) ([]byte, error) {
	if e.protobuf {
		content, err := e.eventObject(nil, f, first)
		if err != nil {
			return to, err
		}
		event := metav1.WatchEvent{Type: f.typ, Object: runtime.RawExtension{Raw: content}}
		size := event.Size()
		from := len(to)
		to = binary.BigEndian.AppendUint32(to, uint32(size))
		to = slices.Grow(to, size)[:from+4+size]
		_, err = event.MarshalToSizedBuffer(to[from+4:])
		return to, err
	}
	to = append(to, `{"type":"`...)
	to = append(to, f.typ...)
	to = append(to, `","object":`...)
	to, err := e.eventObject(to, f, first)
	return append(bytes.TrimRight(to, "\n"), '}', '\n'), err
}

func (e encoder) eventObject(to []byte, f frame, first bool) ([]byte, error) {
	e.pretty = false // a frame is a line
	switch {
	case f.typ == frameError:
		body, err := e.status(*f.status)
		return append(to, body...), err
	case e.as == asTable:
		body, err := e.table([]*object.Object{f.obj}, metav1.ListMeta{ResourceVersion: f.obj.Meta().GetResourceVersion()}, first)
		return append(to, body...), err
	case f.typ == frameBookmark:
		e.cache, e.passing = nil, false
	}
	return e.appendSingle(to, f.obj)
}

// appendMessage appends obj in protobuf, without an envelope.
func (e encoder) appendMessage(to []byte, obj *object.Object, known *openFragments) ([]byte, error) {
	if e.cache != nil && !obj.Poison {
		if out, ok := e.cache.messages.append(to, e.kind, obj.Fields, known); ok {
			return out, nil
		}
	}
	fields := obj.Fields
	if obj.Poison {
		fields = map[string]any{"metadata": obj.Fields["metadata"]}
	}
	typed, err := gotypes.Scheme().New(e.kind.GroupVersionKind)
	if err != nil {
		return to, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		return to, err
	}
	message, ok := typed.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return to, fmt.Errorf("%s has no protobuf form", e.kind.Kind)
	}
	raw, err := message.Marshal()
	if obj.Poison {
		// Field 2 is a message or a map in every kind; here it is a number.
		raw = append(raw, 2<<3, 1)
	}
	return append(to, raw...), err
}

func envelope(apiVersion, kind string, raw []byte) ([]byte, error) {
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	return append([]byte("k8s\x00"), body...), err
}

// envelopeAround is what stands before and after a message of a size in its envelope.
func envelopeAround(apiVersion, kind string, size int) (before, after []byte, err error) {
	whole, err := envelope(apiVersion, kind, []byte{}) // a field of no bytes: its number and a zero
	if err != nil {
		return nil, nil, err
	}
	at := len("k8s\x00") + fieldSize((&runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}).Size()) + 1
	before = binary.AppendUvarint(bytes.Clone(whole[:at]), uint64(size))
	return before, whole[at+1:], nil
}

// fieldSize is how many bytes appendField appends for a content of a size.
func fieldSize(content int) int {
	size := content + 2
	for n := content; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

// appendField appends a field that has a length.
func appendField(to []byte, number byte, content []byte) []byte {
	to = append(to, number<<3|2)
	to = binary.AppendUvarint(to, uint64(len(content)))
	return append(to, content...)
}
