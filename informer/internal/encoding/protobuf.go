// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobufMagic begins each top-level protobuf message of Kubernetes, before a
// runtime.Unknown.
var protobufMagic = []byte("k8s\x00")

// Field numbers of the messages split here, from the generated.proto of
// k8s.io/apimachinery.
const (
	unknownTypeMeta, unknownRaw, unknownEncoding = 1, 2, 3
	typeMetaAPIVersion, typeMetaKind             = 1, 2
	listMetadata, listItems                      = 1, 2
	eventType, eventObject                       = 1, 2
	rawExtensionRaw                              = 1
	ObjectMetadata                               = 1
	metaName, metaNamespace, metaUID, metaRV     = 1, 3, 5, 6
	MetaManagedFields                            = 17
)

func IsProtobuf(data []byte) bool { return bytes.HasPrefix(data, protobufMagic) }

// envelope is a top-level protobuf message. Its slices are parts of the input.
type envelope struct {
	APIVersion, Kind []byte
	Raw              []byte
}

// OpenEnvelope returns the runtime.Unknown of a message.
func OpenEnvelope(data []byte) (e envelope, err error) {
	if !IsProtobuf(data) {
		return e, errors.New("not a Kubernetes protobuf message: the magic bytes are missing")
	}
	err = eachBytes(data[len(protobufMagic):], func(field protowire.Number, value []byte) error {
		switch field {
		case unknownTypeMeta:
			return eachBytes(value, func(field protowire.Number, value []byte) error {
				switch field {
				case typeMetaAPIVersion:
					e.APIVersion = value
				case typeMetaKind:
					e.Kind = value
				}
				return nil
			})
		case unknownRaw:
			e.Raw = value
		case unknownEncoding:
			if len(value) > 0 {
				return fmt.Errorf("content encoding %q is not known", value)
			}
		}
		return nil
	})
	if err != nil {
		return envelope{}, fmt.Errorf("read protobuf envelope: %w", err)
	}
	return e, nil
}

// SplitProtobufList returns the list's metadata and calls item with the bytes
// of each object.
func SplitProtobufList(raw []byte, item func([]byte) error) (meta metav1.ListMeta, err error) {
	err = eachBytes(raw, func(field protowire.Number, value []byte) error {
		switch field {
		case listMetadata:
			return Guard(func() error { return meta.Unmarshal(value) })
		case listItems:
			return item(value)
		}
		return nil
	})
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("split protobuf list: %w", err)
	}
	return meta, nil
}

// SplitProtobufEvent returns the type of a watch event and the bytes of its
// object, an envelope.
func SplitProtobufEvent(frame []byte) (typ, object []byte, err error) {
	err = eachBytes(frame, func(field protowire.Number, value []byte) error {
		switch field {
		case eventType:
			typ = value
		case eventObject:
			return eachBytes(value, func(field protowire.Number, value []byte) error {
				if field == rawExtensionRaw {
					object = value
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("split protobuf watch event: %w", err)
	}
	return typ, object, nil
}

// eachBytes calls f with each length-delimited field of a message and skips the
// others.
func eachBytes(message []byte, f func(field protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, typ, message); n < 0 {
				return protowire.ParseError(n)
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(field, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// CutField finds the first run of the length-delimited field in message. It
// returns the bytes before the run, the value of its first field, and the bytes
// after the run. Without such a field, before is the whole message.
func CutField(message []byte, field protowire.Number) (before, value, after []byte, err error) {
	start, pos := -1, 0
	for pos < len(message) {
		num, typ, n := protowire.ConsumeTag(message[pos:])
		if n < 0 {
			return nil, nil, nil, protowire.ParseError(n)
		}
		v := protowire.ConsumeFieldValue(num, typ, message[pos+n:])
		if v < 0 {
			return nil, nil, nil, protowire.ParseError(v)
		}
		found := num == field && typ == protowire.BytesType
		if !found && start >= 0 {
			break
		}
		if found && start < 0 {
			start = pos
			value, _ = protowire.ConsumeBytes(message[pos+n:])
		}
		pos += n + v
		if found && field == ObjectMetadata {
			break // only the metadata is inspected
		}
	}
	if start < 0 {
		return message, nil, nil, nil
	}
	return message[:start], value, message[pos:], nil
}

// Identity identifies a state of an object; it is read from its metadata alone.
type Identity struct {
	Name, Namespace, UID, ResourceVersion string
}

// ProtobufIdentity reads the identity of an object of any kind, as far as its
// bytes are readable.
func ProtobufIdentity(raw []byte) (id Identity, err error) {
	_, meta, _, err := CutField(raw, ObjectMetadata)
	if err != nil && meta == nil {
		return id, fmt.Errorf("read metadata: %w", err)
	}
	err = eachBytes(meta, func(field protowire.Number, value []byte) error {
		switch field {
		case metaName:
			id.Name = string(value)
		case metaNamespace:
			id.Namespace = string(value)
		case metaUID:
			id.UID = string(value)
		case metaRV:
			id.ResourceVersion = string(value)
		}
		return nil
	})
	return id, err
}
