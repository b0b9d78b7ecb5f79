// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
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
func (e encoder) object(obj *object) ([]byte, error) {
	switch e.as {
	case asMetadataList:
		return nil, errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is not a list (%s)", e.as, e.kind.internalType()))
	case asTable:
		return e.spelled(e.table([]*object{obj}, metav1.ListMeta{ResourceVersion: obj.meta().GetResourceVersion()}, true))
	}
	return e.spelled(e.single(obj))
}

// single is one object with its kind. Nobody but the caller has the bytes.
func (e encoder) single(obj *object) ([]byte, error) {
	content, err := e.content(obj)
	switch {
	case err != nil:
		return nil, err
	case e.as != "" && e.protobuf:
		return envelope(e.metaVersion(), asMetadata, content)
	case e.protobuf:
		return envelope(e.kind.GroupVersion().String(), e.kind.Kind, content)
	case e.as != "":
		return bytes.Clone(content), nil
	}
	return e.withKind(make([]byte, 0, len(content)+len(e.kind.Kind)+len(e.kind.Group)+64), content), nil
}

// withKind appends the content of an object with its kind in front.
func (e encoder) withKind(to, content []byte) []byte {
	to = append(to, `{"kind":"`...)
	to = append(to, e.kind.Kind...)
	to = append(to, `","apiVersion":"`...)
	to = append(to, e.kind.GroupVersion().String()...)
	to = append(to, '"')
	if len(content) > len("{}") {
		to = append(to, ',')
	}
	return append(to, content[1:]...)
}

// content is an object without its kind: in protobuf the message alone. It is
// shared.
func (e encoder) content(obj *object) ([]byte, error) {
	cache := e.cache
	if f := e.kind.family; f != nil && f.asked && f.storage != e.kind {
		cache = nil // the webhook may say something else the next time
	}
	return cache.encoded(obj, e.kind, contentForm{e.protobuf, e.as, e.version}, func() ([]byte, error) {
		if e.as != "" {
			return e.metadata(obj)
		}
		obj, err := e.kind.of(obj)
		if err != nil {
			return nil, err
		}
		obj = e.kind.shown(obj)
		if e.protobuf {
			return e.message(obj)
		}
		return appendFields(nil, obj.fields, "kind", "apiVersion")
	})
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

// event is one frame of a watch: its length in front, or a line.
func (e encoder) event(f frame, first bool) ([]byte, error) {
	content, err := e.eventObject(f, first)
	if err != nil {
		return nil, err
	}
	if e.protobuf {
		event := metav1.WatchEvent{Type: f.typ, Object: runtime.RawExtension{Raw: content}}
		raw, err := event.Marshal()
		if err != nil {
			return nil, err
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), nil
	}
	line := make([]byte, 0, len(content)+len(f.typ)+32)
	line = append(line, `{"type":"`...)
	line = append(line, f.typ...)
	line = append(line, `","object":`...)
	line = append(line, bytes.TrimRight(content, "\n")...)
	return append(line, '}', '\n'), nil
}

func (e encoder) eventObject(f frame, first bool) ([]byte, error) {
	e.pretty = false // a frame is a line
	switch {
	case f.typ == frameError:
		return e.status(*f.status)
	case e.as == asTable:
		return e.table([]*object{f.obj}, metav1.ListMeta{ResourceVersion: f.obj.meta().GetResourceVersion()}, first)
	case f.typ == frameBookmark:
		e.cache = nil
	}
	return e.single(f.obj)
}

// message is obj in protobuf, without an envelope.
func (e encoder) message(obj *object) ([]byte, error) {
	if e.cache != nil && !obj.poison {
		if raw := e.cache.messages.written(e.kind, obj.fields); raw != nil {
			return raw, nil
		}
	}
	fields := obj.fields
	if obj.poison {
		fields = map[string]any{"metadata": obj.fields["metadata"]}
	}
	typed, err := goTypes().New(e.kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		return nil, err
	}
	message, ok := typed.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%s has no protobuf form", e.kind.Kind)
	}
	raw, err := message.Marshal()
	if obj.poison {
		// Field 2 is a message or a map in every kind; here it is a number.
		raw = append(raw, 2<<3, 1)
	}
	return raw, err
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
