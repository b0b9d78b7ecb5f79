// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/internal/shards"
)

// ShardScreen recognizes objects of shards that are not held by their bytes, before they are
// decoded. It is pure.
type ShardScreen struct {
	by     shards.By
	holder *shards.Holder
}

// NewShardScreen returns the screen of d; nil: everything is held.
func NewShardScreen(d shards.Division) *ShardScreen {
	if d.Everything() {
		return nil
	}
	return &ShardScreen{by: d.By, holder: shards.HolderOf(d)}
}

// ByOwner reports whether the shard of an object can change.
func (s *ShardScreen) ByOwner() bool { return s.by == shards.Owner }

// RawMeta is the part of an object's metadata that tells its shard. Its slices are parts of the
// input.
type RawMeta struct {
	Name, Namespace, UID, ResourceVersion []byte
	Kind                                  []byte // of a JSON object that names it
	controller                            []byte // the UID of the controller owner
}

// Foreign reports whether raw, in JSON or protobuf, is surely an object of a shard that is not
// held, and returns its metadata. Whatever is missing, repeated, escaped or malformed makes it
// unsure, so that the decoder looks at it. of reports whether a JSON object may be of that kind.
func (s *ShardScreen) Foreign(
	raw []byte, protobuf bool, of func(kind []byte) bool,
) (m RawMeta, foreign bool) {
	ok := false
	if protobuf {
		ok = m.readProtobuf(raw, s.ByOwner())
	} else {
		ok = m.readJSON(raw, s.ByOwner(), of)
	}
	if !ok || len(m.Name) == 0 || len(m.UID) == 0 || len(m.ResourceVersion) == 0 {
		return m, false
	}
	value := m.UID
	switch {
	case s.by == shards.Namespace:
		value = m.Namespace
	case s.ByOwner() && m.controller != nil:
		value = m.controller
	}
	return m, len(value) > 0 && !s.holder.Has(value)
}

// Field numbers from the generated.proto of k8s.io/apimachinery.
const (
	metaOwners                = 13
	ownerUID, ownerController = 4, 6
)

// once stores a value, unless the field has one.
func once(field *[]byte, value []byte) (first bool) {
	first = *field == nil
	*field = value
	return first && value != nil
}

func (m *RawMeta) readProtobuf(raw []byte, owners bool) bool {
	var meta []byte
	whole := everyField(raw, func(field protowire.Number, value []byte, _ uint64) bool {
		return field != ObjectMetadata || once(&meta, value)
	})
	return whole && everyField(meta, func(field protowire.Number, value []byte, _ uint64) bool {
		switch field {
		case metaName:
			return once(&m.Name, value)
		case metaNamespace:
			return once(&m.Namespace, value)
		case metaUID:
			return once(&m.UID, value)
		case metaRV:
			return once(&m.ResourceVersion, value)
		case metaOwners:
			return !owners || value != nil && m.protobufOwner(value)
		}
		return true
	})
}

// protobufOwner reads an owner reference.
func (m *RawMeta) protobufOwner(raw []byte) bool {
	var uid []byte
	controls, told := false, false
	ok := everyField(raw, func(field protowire.Number, value []byte, number uint64) bool {
		switch field {
		case ownerUID:
			return once(&uid, value)
		case ownerController:
			again := told || value != nil
			told, controls = true, number != 0
			return !again
		}
		return true
	})
	return ok && (!controls || len(uid) > 0 && once(&m.controller, uid))
}

// everyField calls f with each field of a message, until it returns false: with the bytes of a
// length-delimited one, never nil, or the number of a varint, and with neither for others. It
// reports whether f has seen all of a sound message.
func everyField(message []byte, f func(field protowire.Number, value []byte, number uint64) bool) bool {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		var value []byte
		var number uint64
		switch typ {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, typ, message)
		}
		if n < 0 || !f(field, value, number) {
			return false
		}
		message = message[n:]
	}
	return true
}

func (m *RawMeta) readJSON(raw []byte, owners bool, of func(kind []byte) bool) bool {
	var meta []byte
	if !eachPlain(raw, func(key, value []byte) bool {
		switch string(key) {
		case "metadata":
			return once(&meta, value)
		case "kind":
			text, ok := plain(value)
			return ok && once(&m.Kind, text) && of(text)
		}
		return true
	}) {
		return false
	}
	text := func(field *[]byte, value []byte) bool {
		text, ok := plain(value)
		return ok && once(field, text)
	}
	var references []byte
	ok := eachPlain(meta, func(key, value []byte) bool {
		switch string(key) {
		case "name":
			return text(&m.Name, value)
		case "namespace":
			return text(&m.Namespace, value)
		case "uid":
			return text(&m.UID, value)
		case "resourceVersion":
			return text(&m.ResourceVersion, value)
		case "ownerReferences":
			return once(&references, value)
		}
		return true
	})
	return ok && (!owners || references == nil || m.jsonOwners(references))
}

// jsonOwners reads the owner references.
func (m *RawMeta) jsonOwners(references []byte) bool {
	sure := true
	err := jsonspan.EachElement(references, func(one []byte) error {
		var uid, controller []byte
		sure = sure && eachPlain(one, func(key, value []byte) bool {
			switch string(key) {
			case "uid":
				text, ok := plain(value)
				return ok && once(&uid, text)
			case "controller":
				return once(&controller, value)
			}
			return true
		})
		switch string(controller) {
		case "", "false", "null":
		case "true":
			sure = sure && len(uid) > 0 && once(&m.controller, uid)
		default:
			sure = false
		}
		return nil
	})
	return sure && err == nil
}

// eachPlain calls f with each member of the object that raw is, until it returns false. It reports
// whether f has seen all, and no key has escapes.
func eachPlain(raw []byte, f func(key, value []byte) bool) bool {
	sure, after := true, -1
	err := jsonspan.EachMember(raw, func(key []byte, start, end int) bool {
		after = end
		sure = bytes.IndexByte(key, '\\') < 0 && f(key, raw[start:end:end])
		return sure
	})
	if !sure || err != nil || after < 0 {
		return false
	}
	brace := jsonspan.SkipSpace(raw, after)
	return jsonspan.SkipSpace(raw, brace+1) == len(raw)
}

// plain returns the text of a JSON string without escapes, of ASCII characters only.
func plain(value []byte) (text []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	text = value[1 : len(value)-1]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return nil, false
		}
	}
	return text, true
}
