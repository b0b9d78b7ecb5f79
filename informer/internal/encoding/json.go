// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/jsonspan"
)

// jsonList is a list with undecoded objects. Its slices are parts of the input.
type jsonList struct {
	APIVersion, Kind []byte
	Metadata         []byte
	Items            []byte // the array; nil: no such member
}

// SplitJSONList splits a list into its members.
func SplitJSONList(body []byte) (l jsonList, err error) {
	err = jsonspan.EachMember(body, func(key []byte, start, end int) bool {
		switch string(key) {
		case "apiVersion":
			l.APIVersion = bytes.Trim(body[start:end], "\"")
		case "kind":
			l.Kind = bytes.Trim(body[start:end], "\"")
		case "metadata":
			l.Metadata = body[start:end]
		case "items":
			l.Items = body[start:end]
		}
		return true
	})
	if err != nil {
		return jsonList{}, fmt.Errorf("split JSON list: %w", err)
	}
	return l, nil
}

// SplitJSONEvent returns the type and the object of a watch event.
func SplitJSONEvent(frame []byte) (typ, object []byte, err error) {
	err = jsonspan.EachMember(frame, func(key []byte, start, end int) bool {
		switch string(key) {
		case "type":
			typ = bytes.Trim(frame[start:end], "\"")
		case "object":
			object = frame[start:end]
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("split JSON watch event: %w", err)
	}
	return typ, object, nil
}

// compactStart is how the API server begins each watch event.
const compactStart = `{"type":"`

// longestType is the length of the longest event type.
const longestType = len("BOOKMARK")

// SplitCompactEvent does the same without scanning the object, for the API
// server's form: one line, type first, object last. ok is false for any other
// form.
func SplitCompactEvent(frame []byte) (typ, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(frame, []byte(compactStart))
	if !ok {
		return nil, nil, false
	}
	typ, rest, ok = bytes.Cut(rest, []byte("\",\"object\":"))
	if !ok || len(typ) > longestType {
		return nil, nil, false
	}
	object, ok = bytes.CutSuffix(rest, []byte("}"))
	return typ, object, ok && len(object) > 0 && object[0] == '{' && object[len(object)-1] == '}'
}

// CutManagedFields removes metadata.managedFields from an object in place, by
// moving the bytes before it. Without managedFields it returns object
// unchanged.
func CutManagedFields(object []byte) []byte {
	metaStart, metaEnd := -1, -1
	_ = jsonspan.EachMember(object, func(key []byte, start, end int) bool {
		if string(key) != "metadata" {
			// Objects have their kind first and then their metadata; searching
			// further is not worth the time.
			return string(key) == "apiVersion" || string(key) == "kind"
		}
		metaStart, metaEnd = start, end
		return false
	})
	if metaStart < 0 {
		return object
	}
	meta := object[metaStart:metaEnd]
	cutStart, cutEnd := -1, -1
	_ = jsonspan.EachMember(meta, func(key []byte, start, end int) bool {
		if string(key) != "managedFields" {
			return true
		}
		cutStart, cutEnd = start, end
		return false
	})
	const instead = "null"
	if cutEnd-cutStart <= len(instead) {
		return object
	}
	cutStart, cutEnd = metaStart+cutStart, metaStart+cutEnd
	shift := cutEnd - cutStart - len(instead)
	copy(object[shift:], object[:cutStart])
	copy(object[cutEnd-len(instead):], instead)
	return object[shift:]
}

// JSONKind reads the apiVersion and kind of an object, empty if unreadable.
func JSONKind(raw []byte) (apiVersion, kind string) {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return "", ""
	}
	return object.APIVersion, object.Kind
}

// GarbledIdentity reads the identity of an object that is not valid JSON, if
// its metadata is.
func GarbledIdentity(raw []byte) (id Identity) {
	_ = jsonspan.EachMember(raw, func(key []byte, start, end int) bool {
		if string(key) != "metadata" {
			return true
		}
		id, _ = JSONIdentity(append(append([]byte(`{"metadata":`), raw[start:end]...), '}'))
		return false
	})
	return id
}

// JSONIdentity reads the identity of an object of any kind.
func JSONIdentity(raw []byte) (Identity, error) {
	var object struct {
		Metadata struct {
			Name            string `json:"name"`
			Namespace       string `json:"namespace"`
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return Identity{}, fmt.Errorf("read metadata: %w", err)
	}
	return Identity(object.Metadata), nil
}

// Guard returns a panic of a type's decoding as an error.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while decoding: %v", p)
		}
	}()
	return f()
}
