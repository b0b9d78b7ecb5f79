// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// get returns the encoder of a Go struct; nil: only the type itself can encode it.
func (p *ProtoMessages) get(t reflect.Type) *protoMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.of == nil {
		p.mu.of = map[reflect.Type]*protoMessage{}
	}
	if m, known := p.mu.of[t]; known {
		return m
	}
	reader := &protoReader{known: map[reflect.Type]*protoMessage{}}
	m := reader.message(t)
	if reader.failed {
		m = nil
	}
	p.mu.of[t] = m
	return m
}

// protoReader inspects Go types.
type protoReader struct {
	known  map[reflect.Type]*protoMessage // types may be recursive
	failed bool
}

func (r *protoReader) message(t reflect.Type) *protoMessage {
	if m := r.known[t]; m != nil {
		return m
	}
	m := &protoMessage{}
	r.known[t] = m
	numbers := map[uint64]bool{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue // the envelope has it
		}
		f, ok := r.field(field)
		if !ok || numbers[f.tag>>3] {
			r.failed = true
			return m
		}
		numbers[f.tag>>3] = true
		m.fields = append(m.fields, f)
	}
	slices.SortFunc(m.fields, func(a, b protoField) int { return cmp.Compare(a.tag, b.tag) })
	return m
}

func (r *protoReader) field(field reflect.StructField) (f protoField, ok bool) {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 3 || slices.Contains(parts, "packed") {
		return f, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 32)
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if err != nil || name == "" && !field.Anonymous || name == "-" {
		return f, false
	}
	f.name = name
	t := field.Type
	switch {
	case t.Kind() == reflect.Pointer:
		f.put, ok = r.value(t.Elem())
		ok = ok && t.Elem().Kind() != reflect.Pointer
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.put, ok = putBytes, !custom(t)
	case t.Kind() == reflect.Slice:
		f.each = true
		f.put, ok = r.value(t.Elem())
	case t.Kind() == reflect.Map:
		f.entries = true
		f.put, ok = r.value(t.Elem())
		ok = ok && t.Key().Kind() == reflect.String
	default:
		f.always = true
		f.put, ok = r.value(t)
	}
	f.tag = number<<3 | wireOf(t)
	return f, ok
}

// wireOf returns the wire type of values of t. Some tags name another one.
func wireOf(t reflect.Type) uint64 {
	switch t.Kind() {
	case reflect.Pointer:
		return wireOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return wireOf(t.Elem())
		}
	case reflect.Bool, reflect.Int32, reflect.Int64:
		return wireVarint
	case reflect.Float64:
		return wireFixed64
	}
	return WireBytes
}

// value returns the encoder of one value, with its length if it has one.
func (r *protoReader) value(t reflect.Type) (put, bool) {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return inside(putTime(time.RFC3339, false)), true
	case reflect.TypeFor[metav1.MicroTime]():
		return inside(putTime(metav1.RFC3339Micro, true)), true
	case reflect.TypeFor[resource.Quantity]():
		return inside(putQuantity), true
	case reflect.TypeFor[intstr.IntOrString]():
		return inside(putIntOrString), true
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return inside(putRaw), true
	}
	if custom(t) {
		return nil, false
	}
	switch t.Kind() {
	case reflect.String:
		return putString, true
	case reflect.Bool:
		return putBool, true
	case reflect.Int32, reflect.Int64:
		return putInt(t.Bits()), true
	case reflect.Float64:
		return putFloat, true
	case reflect.Struct:
		m := r.message(t)
		return inside(m.put), !r.failed
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return putBytes, true
		}
	}
	return nil, false
}

// custom reports whether t has its own JSON decoding, or a protobuf message that its Go
// fields do not show.
func custom(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	_, marshals := reflect.PointerTo(t).MethodByName("MarshalToSizedBuffer")
	return marshals && t.Kind() != reflect.Struct
}
