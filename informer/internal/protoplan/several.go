// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// several decodes all values of a list or map. run are their bytes, with a tag
// before each.
func (s *state) several(f *field, run []byte, tag, count int, p unsafe.Pointer) bool {
	part, found := s.begin(f, run)
	if found {
		if f.shape == dict {
			*(*unsafe.Pointer)(p) = part.found.Ptr
			return true
		}
		setSlice(p, part.found.Ptr, part.found.Len)
		return true
	}
	if f.shape == dict {
		if !s.dict(f, run, tag, count, p) {
			return false
		}
		if part.keep.Wanted() {
			*(*unsafe.Pointer)(p) = s.end(f, run, part, share.Value{Ptr: *(*unsafe.Pointer)(p)}).Ptr
		}
		return true
	}
	if !s.list(f, run, tag, count, p) {
		return false
	}
	if part.keep.Wanted() && int(f.size)*count >= smallest {
		v := s.end(f, run, part, share.Value{Ptr: *(*unsafe.Pointer)(p), Len: count})
		setSlice(p, v.Ptr, v.Len)
	} else if part.keep.Wanted() {
		s.own += s.block.end(part.mark)
	}
	return true
}

// setSlice stores a slice of that data at p. A slice of any type begins with the
// pointer to its data.
func setSlice(p, data unsafe.Pointer, length int) {
	*(*[]byte)(p) = unsafe.Slice((*byte)(data), length)
}

// list decodes all elements of a list.
func (s *state) list(f *field, run []byte, tag, count int, p unsafe.Pointer) bool {
	var elements unsafe.Pointer
	switch f.kind {
	case text:
		of := make([]string, count)
		*(*[]string)(p) = of
		elements = unsafe.Pointer(unsafe.SliceData(of))
	default:
		of := reflect.NewAt(f.typ, p).Elem()
		of.Grow(count)
		of.SetLen(count)
		of.SetCap(count)
		elements = of.UnsafePointer()
	}
	s.own += roundUp(int64(f.size)*int64(count), true)
	for at := 0; at < len(run); {
		at += tag
		if f.wire != bytesOf {
			v, next := numberAt(f.kind, run, at)
			if next < 0 {
				return false
			}
			put(f.kind, v, elements)
			at = next
		} else {
			body, next, ok := lengthAt(run, at)
			if !ok || !s.value(f, body, elements) {
				return false
			}
			at = next
		}
		if at < len(run) { // no pointer behind the last element
			elements = unsafe.Add(elements, f.size)
		}
	}
	return true
}

// pair is an entry of a map of strings.
type pair struct {
	key, value       string
	keyRaw, valueRaw []byte // of strings that are not shared
}

// dict decodes all entries of a map.
func (s *state) dict(f *field, run []byte, tag, count int, p unsafe.Pointer) bool {
	s.own += sizeOfMap(count, int64(f.size))
	if f.simple {
		return s.strings(f, run, tag, count, p)
	}
	var of reflect.Value
	var quantities map[string]resource.Quantity
	var texts map[string][]byte
	switch f.kind {
	case quantity:
		quantities = make(map[string]resource.Quantity, count)
		*(*map[string]resource.Quantity)(p) = quantities
	case data:
		texts = make(map[string][]byte, count)
		*(*map[string][]byte)(p) = texts
	default:
		of = reflect.NewAt(f.typ, p).Elem()
		of.Set(reflect.MakeMapWithSize(f.typ, count))
	}
	for at := 0; at < len(run); {
		entry, next, ok := lengthAt(run, at+tag)
		if !ok {
			return false
		}
		at = next
		keyRaw, valueRaw, ok := entryOf(entry)
		if !ok {
			return false
		}
		key, shared := s.sharedText(&f.keys, keyRaw)
		if !shared {
			key = string(keyRaw)
			s.own += roundUp(int64(len(key)), false)
		}
		switch f.kind {
		case quantity:
			var q resource.Quantity
			if f.costly.Protobuf(valueRaw) != nil || q.Unmarshal(valueRaw) != nil {
				return false
			}
			s.own += roundUp(int64(len(valueRaw)), false)
			quantities[key] = q
		case data:
			own := make([]byte, len(valueRaw))
			copy(own, valueRaw)
			s.own += roundUp(int64(len(own)), false)
			texts[key] = own
		default:
			value := reflect.New(f.elem)
			mark := s.block.begin()
			if !s.value(f, valueRaw, value.UnsafePointer()) {
				return false
			}
			s.own += s.block.end(mark)
			of.SetMapIndex(reflect.ValueOf(key).Convert(f.typ.Key()), value.Elem())
		}
	}
	return true
}

// strings decodes a map of strings. Its strings that are not shared are one
// block.
func (s *state) strings(f *field, run []byte, tag, count int, p unsafe.Pointer) bool {
	pairs := s.pairs[:0]
	length := 0
	for at := 0; at < len(run); {
		entry, next, ok := lengthAt(run, at+tag)
		if !ok {
			return false
		}
		at = next
		var e pair
		if e.keyRaw, e.valueRaw, ok = entryOf(entry); !ok {
			return false
		}
		var shared bool
		if e.key, shared = s.sharedText(&f.keys, e.keyRaw); shared {
			e.keyRaw = nil
		}
		if e.value, shared = s.sharedText(&f.text, e.valueRaw); shared {
			e.valueRaw = nil
		}
		length += len(e.keyRaw) + len(e.valueRaw)
		pairs = append(pairs, e)
	}
	own := make([]byte, 0, length)
	s.own += roundUp(int64(length), false)
	of := make(map[string]string, count)
	*(*map[string]string)(p) = of
	for _, e := range pairs {
		if e.keyRaw != nil {
			e.key, own = cut(own, e.keyRaw)
		}
		if len(e.valueRaw) > 0 {
			e.value, own = cut(own, e.valueRaw)
		}
		of[e.key] = e.value
	}
	s.pairs = pairs
	return true
}

// cut appends raw to own, which has room for it, and returns it as a string.
func cut(own, raw []byte) (string, []byte) {
	if len(raw) == 0 {
		return "", own
	}
	start := len(own)
	own = append(own, raw...)
	return unsafe.String(&own[start], len(raw)), own
}
