// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// These functions find where values of a JSON text begin and end. They do not
// allocate and do not validate the values: the decoder does.

// skipSpace returns the first position from i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the position after the string at i, or -1 if it does not
// end.
func skipString(b []byte, i int) int {
	for at := i + 1; at < len(b); {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		end := at + n
		escapes := 0
		for end-1-escapes >= at && b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		at = end + 1
	}
	return -1
}

// SkipValue returns the position after the value at i, or -1 if there is none
// or it does not end.
func SkipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && bytes.IndexByte([]byte(" \n\r\t,:{}[]\""), b[i]) < 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

var errNotJSON = errors.New("not the JSON text that was expected")

// eachMember calls f for each member of the object at the start of b, with the
// raw key without quotes and the bounds of its value, until f returns false.
func eachMember(b []byte, f func(key []byte, start, end int) bool) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errNotJSON
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return nil
	}
	for i < len(b) && b[i] == '"' {
		keyEnd := skipString(b, i)
		if keyEnd < 0 {
			return errNotJSON
		}
		key := b[i+1 : keyEnd-1]
		i = skipSpace(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return errNotJSON
		}
		start := skipSpace(b, i+1)
		end := SkipValue(b, start)
		if end < 0 {
			return errNotJSON
		}
		if !f(key, start, end) {
			return nil
		}
		i = skipSpace(b, end)
		if i < len(b) && b[i] == '}' {
			return nil
		}
		if i >= len(b) || b[i] != ',' {
			return errNotJSON
		}
		i = skipSpace(b, i+1)
	}
	return errNotJSON
}

// jsonList is a list with undecoded objects. Its slices are parts of the input.
type jsonList struct {
	APIVersion, Kind []byte
	Metadata         []byte
	Items            []byte // the array; nil: no such member
}

// SplitJSONList splits a list into its members.
func SplitJSONList(body []byte) (l jsonList, err error) {
	err = eachMember(body, func(key []byte, start, end int) bool {
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

// EachElement calls f with each element of an array until f returns an error.
// null has no elements.
func EachElement(array []byte, f func(element []byte) error) error {
	if bytes.Equal(array, []byte("null")) {
		return nil
	}
	if len(array) == 0 || array[0] != '[' {
		return errNotJSON
	}
	i := skipSpace(array, 1)
	if i < len(array) && array[i] == ']' {
		return nil
	}
	for {
		end := SkipValue(array, i)
		next := skipSpace(array, max(end, i))
		if end < 0 || next >= len(array) || array[next] != ',' && array[next] != ']' {
			// Invalid JSON: treat everything up to the next comma as one
			// element.
			if end = elementEnd(array, i); end < 0 {
				return fmt.Errorf("after %d bytes of the list's items: %w", i, errNotJSON)
			}
			next = end
		}
		if err := f(array[i:end]); err != nil {
			return err
		}
		if array[next] == ']' {
			return nil
		}
		i = skipSpace(array, next+1)
	}
}

// elementEnd returns where the element at i ends: at the next comma or bracket
// outside strings, objects and arrays. -1: none.
func elementEnd(array []byte, i int) int {
	for i >= 0 && i < len(array) {
		switch array[i] {
		case ',', ']':
			return i
		case '"', '{', '[':
			i = SkipValue(array, i)
		default:
			i++
		}
	}
	return -1
}

// SplitJSONEvent returns the type and the object of a watch event.
func SplitJSONEvent(frame []byte) (typ, object []byte, err error) {
	err = eachMember(frame, func(key []byte, start, end int) bool {
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
	_ = eachMember(object, func(key []byte, start, end int) bool {
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
	_ = eachMember(meta, func(key []byte, start, end int) bool {
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
	_ = eachMember(raw, func(key []byte, start, end int) bool {
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
