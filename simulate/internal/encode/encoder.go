// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode writes answers in the form that a request asks for: JSON, YAML, protobuf,
// tables or metadata only; one object, a list sent in parts, or the frames of a watch. A
// Cache keeps the last encodings, within a bound. It sees kinds.
package encode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// Encoder writes answers about one kind in the requested form.
type Encoder struct {
	kind           *kinds.Kind // nil: only a Status
	Protobuf, yaml bool        // otherwise JSON
	Pretty         bool        // JSON for people
	as             string
	version        string                     // of the group of as
	include        metav1.IncludeObjectPolicy // what a table row contains of its object
	unacceptable   bool                       // no supported form was requested
	Cache          *Cache
	fragments      *wire.Fragments // of the many objects that are being encoded; nil: they are few
	passing        bool            // they are too many to be cached
}

func (e Encoder) ContentType() string {
	switch {
	case e.Protobuf:
		return ContentProtobuf
	case e.yaml:
		return ContentYAML
	}
	return ContentJSON
}

// StreamType returns the content type of a watch.
func (e Encoder) StreamType() string {
	if e.Protobuf {
		return ContentProtobuf + streamed
	}
	return ContentJSON
}

// spelled converts a body of JSON to the requested form. Protobuf passes unchanged.
func (e Encoder) spelled(body []byte, err error) ([]byte, error) {
	switch {
	case err != nil || e.Protobuf:
		return body, err
	case e.yaml:
		return yaml.JSONToYAML(body)
	case e.Pretty:
		var out bytes.Buffer
		err := json.Indent(&out, body, "", "  ")
		return out.Bytes(), err
	}
	return append(body, '\n'), nil
}

// Object returns the answer with one object.
func (e Encoder) Object(obj *object.Object) ([]byte, error) {
	switch e.as {
	case asMetadataList:
		return nil, errNotAcceptable(fmt.Sprintf("you requested %s, but the requested object is not a list (%s)", e.as, internalType(e.kind)))
	case AsTable:
		return e.spelled(e.table([]*object.Object{obj}, metav1.ListMeta{ResourceVersion: obj.Meta().GetResourceVersion()}, true))
	}
	return e.spelled(e.single(obj))
}

// single returns one object with its kind. The caller owns the bytes.
func (e Encoder) single(obj *object.Object) ([]byte, error) {
	var to []byte
	if known := obj.Encoded.Load().In(e.kind, e.form()); known != nil && !e.Protobuf {
		to = make([]byte, 0, known.Size+len(e.kind.Kind)+len(e.kind.Group)+64)
	}
	return e.appendSingle(to, obj)
}

// appendSingle appends one object with its kind.
func (e Encoder) appendSingle(to []byte, obj *object.Object) ([]byte, error) {
	switch {
	case e.Protobuf:
		content, err := e.content(obj)
		if err != nil {
			return to, err
		}
		version, kind := e.kind.GroupVersion().String(), e.kind.Kind
		if e.as != "" {
			version, kind = e.metaVersion(), asMetadata
		}
		before, after, err := wire.EnvelopeAround(version, kind, len(content))
		to = slices.Grow(to, len(before)+len(content)+len(after))
		return append(append(append(to, before...), content...), after...), err
	case e.as != "":
		return e.appendContent(to, obj)
	}
	return e.appendWithKind(to, obj)
}

// appendWithKind appends the JSON of an object with its kind in front.
func (e Encoder) appendWithKind(to []byte, obj *object.Object) ([]byte, error) {
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

// content returns an object without its kind: in protobuf the message alone. The bytes are
// shared.
func (e Encoder) content(obj *object.Object) ([]byte, error) {
	return e.keeps().encoded(obj, e.kind, e.form(), func() ([]byte, error) { return e.appendAnew(nil, obj) })
}

func (e Encoder) form() object.ContentForm {
	return object.ContentForm{Protobuf: e.Protobuf, As: e.as, Version: e.version}
}

// keeps returns the cache of e's objects; nil: they are not cached.
func (e Encoder) keeps() *Cache {
	if f := e.kind.Family; f != nil && f.Asked && f.Storage != e.kind {
		return nil // the webhook may answer differently the next time
	}
	return e.Cache
}

// appendContent appends the content of an object and caches what it encodes, unless there
// is too much of it.
func (e Encoder) appendContent(to []byte, obj *object.Object) ([]byte, error) {
	if !e.passing || e.keeps() == nil {
		content, err := e.content(obj)
		return append(to, content...), err
	}
	if content := obj.Encoded.Load().In(e.kind, e.form()).Kept(); content != nil {
		return append(to, content...), nil
	}
	return e.appendAnew(to, obj)
}

func (e Encoder) appendAnew(to []byte, obj *object.Object) ([]byte, error) {
	if e.as != "" {
		content, err := e.metadata(obj)
		return append(to, content...), err
	}
	obj, err := e.kind.Of(obj)
	if err != nil {
		return to, err
	}
	obj = e.kind.Shown(obj)
	known := e.fragments.TryOpen()
	defer known.Close()
	if e.Protobuf {
		return e.appendMessage(to, obj, known)
	}
	return e.Cache.appendText(to, obj, known)
}

// ForMany returns e for encoding this number of objects, of which first returns one, in
// succession: a list or its pages.
func (e Encoder) ForMany(objects int, first func() *object.Object) Encoder {
	if e.keeps() == nil || objects < wire.FragmentsFrom || e.as == AsTable {
		return e
	}
	e.fragments = &e.Cache.fragments
	if content, err := e.content(first()); err == nil {
		e.passing = objects*len(content) > e.Cache.bound()/2
	}
	return e
}

// Status encodes a Status.
func (e Encoder) Status(status metav1.Status) ([]byte, error) {
	status.Kind, status.APIVersion = "Status", "v1"
	if e.Protobuf {
		raw, err := status.Marshal()
		if err != nil {
			return nil, err
		}
		return wire.Envelope("v1", "Status", raw)
	}
	return e.spelled(json.Marshal(status))
}

// Event appends one event of a watch: length-prefixed, or as a line.
func (e Encoder) Event(to []byte, f revisions.Event, first bool) ([]byte, error) {
	if e.Protobuf {
		content, err := e.eventObject(nil, f, first)
		if err != nil {
			return to, err
		}
		event := metav1.WatchEvent{Type: f.Type, Object: runtime.RawExtension{Raw: content}}
		size := event.Size()
		from := len(to)
		to = binary.BigEndian.AppendUint32(to, uint32(size))
		to = slices.Grow(to, size)[:from+4+size]
		_, err = event.MarshalToSizedBuffer(to[from+4:])
		return to, err
	}
	to = append(to, `{"type":"`...)
	to = append(to, f.Type...)
	to = append(to, `","object":`...)
	to, err := e.eventObject(to, f, first)
	return append(bytes.TrimRight(to, "\n"), '}', '\n'), err
}

func (e Encoder) eventObject(to []byte, f revisions.Event, first bool) ([]byte, error) {
	e.Pretty = false // a frame is a line
	switch {
	case f.Type == revisions.Failed:
		body, err := e.Status(*f.Status)
		return append(to, body...), err
	case e.as == AsTable:
		body, err := e.table([]*object.Object{f.Object}, metav1.ListMeta{ResourceVersion: f.Object.Meta().GetResourceVersion()}, first)
		return append(to, body...), err
	case f.Type == revisions.Bookmark:
		e.Cache, e.passing = nil, false
	}
	return e.appendSingle(to, f.Object)
}

// appendMessage appends obj in protobuf, without an envelope.
func (e Encoder) appendMessage(to []byte, obj *object.Object, known *wire.OpenFragments) ([]byte, error) {
	if e.Cache != nil && !obj.Corrupt {
		if out, ok := e.Cache.messages.Append(to, e.kind.GroupVersionKind, obj.Fields, known); ok {
			return out, nil
		}
	}
	fields := obj.Fields
	if obj.Corrupt {
		fields = map[string]any{"metadata": obj.Fields["metadata"]}
	}
	typed, err := models.Scheme().New(e.kind.GroupVersionKind)
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
	if obj.Corrupt {
		// Field 2 is a message or a map in every kind; this makes it a number.
		raw = append(raw, 2<<3, 1)
	}
	return append(to, raw...), err
}
