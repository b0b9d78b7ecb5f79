// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// protoPlan estimates how much memory decoding a protobuf message of the
// Kubernetes API allocates, without decoding it. An empty element of a list of
// messages is two bytes and becomes a struct of hundreds. As of JSON, the
// estimate counts all allocations and is rather too high; tests compare it with
// actual allocations. Make it with protoPlanOf; it is immutable.
type protoPlan struct {
	fields []field // by number
	opaque bool    // the type does not show its fields
	size   int64   // of the largest type that a message leads to
}

type field struct {
	known    bool
	repeated bool
	mapped   bool
	size     int64      // of an element, a map entry, or the target of a pointer
	of       *protoPlan // nil: bytes or a number
}

// protoPlanOf compiles the plan of a type, or of its element if it is a pointer.
// Cache it.
func protoPlanOf(t reflect.Type) *protoPlan {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	plans := map[reflect.Type]*protoPlan{}
	p := compile(t, plans)
	for _, other := range plans {
		p.size = max(p.size, other.size)
	}
	return p
}

func compile(t reflect.Type, plans map[reflect.Type]*protoPlan) *protoPlan {
	if p := plans[t]; p != nil {
		return p
	}
	p := &protoPlan{size: 64}
	plans[t] = p
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil || number < 1 || number > 1000 {
			continue
		}
		for len(p.fields) <= number {
			p.fields = append(p.fields, field{})
		}
		made := fieldOf(f.Type, plans)
		p.fields[number], p.size = made, max(p.size, made.size)
	}
	p.opaque = len(p.fields) == 0
	return p
}

func fieldOf(t reflect.Type, plans map[reflect.Type]*protoPlan) field {
	f := field{known: true}
	switch t.Kind() {
	case reflect.Pointer:
		t = t.Elem()
		f.size = int64(t.Size())
	case reflect.Slice:
		t = t.Elem()
		if t.Kind() == reflect.Uint8 {
			return f
		}
		if f.repeated, f.size = true, int64(t.Size()); t.Kind() == reflect.Pointer {
			t = t.Elem()
			f.size += int64(t.Size())
		}
	case reflect.Map:
		f.mapped, f.size = true, int64(t.Key().Size()+t.Elem().Size())
		t = t.Elem()
	}
	// A named list type is a message with one field.
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		f.of = &protoPlan{fields: []field{{}, fieldOf(t, plans)}}
		return f
	}
	if t.Kind() == reflect.Struct {
		f.of = compile(t, plans)
	}
	return f
}

// errMessageDeep is returned by Weigh for a message deeper than maxDepth.
var errMessageDeep = fmt.Errorf("more than %d levels of messages", maxDepth)

// errMessageHeavy is returned by Weigh when the weight exceeds the limit.
var errMessageHeavy = errors.New("too much memory when decoded")

// ofDecoder is the fixed cost of any message.
const ofDecoder = 256

// Bound returns an upper bound of what decoding a message of that size takes.
func (p *protoPlan) Bound(bytes int64) int64 { return ofDecoder + bytes*(5*p.size+64) }

// Weigh weighs a message until the weight exceeds limit. Unreadable parts have
// no weight: the decoder reports the error.
func (p *protoPlan) Weigh(message []byte, limit int64) (int64, error) {
	s := protoScale{sum: ofDecoder, limit: limit}
	err := s.message(p, message, 0)
	return s.sum, err
}

// protoScale weighs one message.
type protoScale struct{ sum, limit int64 }

// room is the allocated capacity of the lists and maps of one message.
type room struct{ n, room int64 }

func (s *protoScale) message(p *protoPlan, message []byte, depth int) error {
	if depth > maxDepth {
		return errMessageDeep
	}
	if p.opaque {
		s.sum += 128 + 8*int64(len(message))
		return s.over()
	}
	var few [24]room
	rooms := few[:]
	if len(p.fields) > len(few) {
		rooms = make([]room, len(p.fields))
	}
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
			return nil
		}
		value := message[:n]
		message = message[n:]
		if int(number) >= len(p.fields) || !p.fields[number].known {
			continue
		}
		if err := s.value(&p.fields[number], &rooms[number], wire, value, depth); err != nil {
			return err
		}
	}
	return s.over()
}

func (s *protoScale) value(f *field, in *room, wire protowire.Type, value []byte, depth int) error {
	in.n++
	switch {
	case f.mapped:
		slot := min(f.size, 144)
		s.sum += growMap(&in.room, in.n, slot) + f.size
	case f.repeated && wire == protowire.BytesType && f.of == nil && f.size <= 8: // packed numbers
		s.sum += 8 * int64(len(value))
	case f.repeated:
		s.sum += grow(&in.room, in.n, f.size)
	default:
		s.sum += f.size
	}
	if wire != protowire.BytesType {
		return s.over()
	}
	content, _ := protowire.ConsumeBytes(value)
	if f.mapped {
		return s.entry(f, content, depth)
	}
	if f.of == nil {
		s.sum += 16 + int64(len(content)) + int64(len(content))/8
		return s.over()
	}
	return s.message(f.of, content, depth+1)
}

// entry counts the key and the value of one map entry.
func (s *protoScale) entry(f *field, entry []byte, depth int) error {
	for len(entry) > 0 {
		number, wire, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return nil
		}
		entry = entry[n:]
		if n = protowire.ConsumeFieldValue(number, wire, entry); n < 0 {
			return nil
		}
		value, _ := protowire.ConsumeBytes(entry[:n])
		entry = entry[n:]
		if number == 2 && f.of != nil {
			if err := s.message(f.of, value, depth+1); err != nil {
				return err
			}
			continue
		}
		s.sum += 16 + int64(len(value)) + int64(len(value))/8
	}
	return s.over()
}

func (s *protoScale) over() error {
	if s.sum > s.limit {
		return errMessageHeavy
	}
	return nil
}
