// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	contentJSON     = "application/json"
	contentProtobuf = "application/vnd.kubernetes.protobuf"
)

// encoder writes answers about one kind in the form that was asked for.
type encoder struct {
	kind     *Kind // nil: only Status
	protobuf bool
	alone    bool // of objects only their metadata
}

// encoderFor takes the first form in the Accept header that the kind has.
func encoderFor(kind *Kind, accept string) encoder {
	for part := range strings.SplitSeq(accept, ",") {
		media, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		alone, known := wantsAlone(params)
		switch {
		case !known:
		case media == contentProtobuf && (kind == nil || kind.builtin || alone):
			return encoder{kind: kind, protobuf: true, alone: alone}
		case media == contentJSON, media == "*/*":
			return encoder{kind: kind, alone: alone}
		}
	}
	return encoder{kind: kind}
}

func (e encoder) contentType() string {
	if e.protobuf {
		return contentProtobuf
	}
	return contentJSON
}

// object is one object with its kind and defaults.
func (e encoder) object(obj *object) ([]byte, error) { return e.plain(e.kind.shown(obj)) }

// plain is one object with its kind.
func (e encoder) plain(obj *object) ([]byte, error) {
	if e.alone {
		return e.metadata(obj)
	}
	if e.protobuf {
		raw, err := e.message(obj)
		if err != nil {
			return nil, err
		}
		return envelope(e.kind.GroupVersion().String(), e.kind.Kind, raw)
	}
	fields := maps.Clone(obj.fields)
	fields["apiVersion"], fields["kind"] = e.kind.GroupVersion().String(), e.kind.Kind
	return json.Marshal(fields)
}

// list is a page. Items of built-in kinds do not repeat what kind they are.
func (e encoder) list(meta metav1.ListMeta, items []*object) ([]byte, error) {
	if e.alone {
		return e.metadataList(meta, items)
	}
	version, kind := e.kind.GroupVersion().String(), e.kind.Kind+"List"
	if e.protobuf {
		head, err := meta.Marshal()
		if err != nil {
			return nil, err
		}
		raw := appendField(nil, 1, head)
		for _, obj := range items {
			item, err := e.message(e.kind.shown(obj))
			if err != nil {
				return nil, err
			}
			raw = appendField(raw, 2, item)
		}
		return envelope(version, kind, raw)
	}
	all := make([]map[string]any, 0, len(items))
	for _, obj := range items {
		fields := maps.Clone(e.kind.shown(obj).fields)
		delete(fields, "apiVersion")
		delete(fields, "kind")
		if !e.kind.builtin {
			fields["apiVersion"], fields["kind"] = version, e.kind.Kind
		}
		all = append(all, fields)
	}
	return json.Marshal(struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Metadata   metav1.ListMeta  `json:"metadata"`
		Items      []map[string]any `json:"items"`
	}{kind, version, meta, all})
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
	return json.Marshal(status)
}

// event is one frame of a watch: its length in front, or a line.
func (e encoder) event(f frame) ([]byte, error) {
	var content []byte
	var err error
	switch f.typ {
	case frameError:
		content, err = e.status(f.status)
	case frameBookmark:
		content, err = e.plain(f.obj)
	default:
		content, err = e.object(f.obj)
	}
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: f.typ, Object: runtime.RawExtension{Raw: content}}
	if e.protobuf {
		raw, err := event.Marshal()
		if err != nil {
			return nil, err
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...), nil
	}
	line, err := json.Marshal(event)
	return append(line, '\n'), err
}

// message is obj in protobuf, without an envelope.
func (e encoder) message(obj *object) ([]byte, error) {
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

// appendField appends a field that has a length.
func appendField(to []byte, number byte, content []byte) []byte {
	to = append(to, number<<3|2)
	to = binary.AppendUvarint(to, uint64(len(content)))
	return append(to, content...)
}
