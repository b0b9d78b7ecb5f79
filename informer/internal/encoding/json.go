// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// The functions here find where values of a JSON text begin and end. They
// never allocate and do not check what is in a value: who decodes it does.

// skipSpace is the first position from i on that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString is the position after the string that begins at i, -1 if it does
// not end.
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

// SkipValue is the position after the value that begins at i, -1 if there is
// none or it does not end.
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

// eachMember calls f with the key (raw, without quotes) of each member of the
// object at the beginning of b, and where its value lies. It ends early when f
// returns false.
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

// jsonList is a list, its objects not decoded. Its slices are parts of the
// input.
type jsonList struct {
	APIVersion, Kind []byte
	Metadata         []byte
	Items            []byte // the array; nil: the list has no such member
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

// eachElement calls f with each element of an array, until f returns an error. null has
// none.
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
			// Not JSON: what lies up to the next comma is one element, if that is found.
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

// elementEnd is where the element that begins at i ends: before the next comma or
// bracket that is in no string, object or list. -1: there is none.
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

// SplitJSONEvent gives the type and the object of a watch event.
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

// compactStart begins each watch event of the API server.
const compactStart = `{"type":"`

// longestType is how long the type of a watch event may be: that of BOOKMARK.
const longestType = len("BOOKMARK")

// SplitCompactEvent does the same without a look at the object, for the form
// that the API server writes: one line, type first, object last. ok is false
// for any other form.
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

// CutManagedFields removes metadata.managedFields from an object by moving
// what is before it, in place. It returns object itself when there is none.
func CutManagedFields(object []byte) []byte {
	metaStart, metaEnd := -1, -1
	_ = eachMember(object, func(key []byte, start, end int) bool {
		if string(key) != "metadata" {
			// Objects say what they are and then their metadata; what comes later is
			// not worth the look.
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

// JSONKind reads what an object says it is; empty: nothing that can be read.
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

// GarbledIdentity reads the identity of an object that is not JSON, as far as its
// metadata is.
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

// JSONIdentity reads the identity out of an object of any kind.
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

// Guard turns a panic of a type's own decoding into an error.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while decoding: %v", p)
		}
	}()
	return f()
}
