// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/models"
)

// backward is a message that is encoded from its end, so each length is known when it is
// encoded.
type backward struct {
	buf   []byte
	at    int // where the message begins
	known *OpenFragments
	json  JSONWriter // for values of any type
}

// room makes room for n bytes in front of the message.
func (b *backward) room(n int) {
	if b.at >= n {
		b.at -= n
		return
	}
	grown := make([]byte, 2*len(b.buf)+n+512)
	written := len(b.buf) - b.at
	copy(grown[len(grown)-written:], b.buf[b.at:])
	b.buf, b.at = grown, len(grown)-written-n
}

func (b *backward) varint(v uint64) {
	n := 1
	for rest := v; rest >= 1<<7; rest >>= 7 {
		n++
	}
	b.room(n)
	binary.PutUvarint(b.buf[b.at:], v)
}

func (b *backward) text(s string) {
	b.room(len(s))
	copy(b.buf[b.at:], s)
}

func (b *backward) bytes(raw []byte) {
	b.room(len(raw))
	copy(b.buf[b.at:], raw)
}

// length encodes the number of bytes since end, an earlier result of written.
func (b *backward) length(end int) { b.varint(uint64(b.written() - end)) }

func (b *backward) written() int { return len(b.buf) - b.at }

// put encodes the value of a field without its tag. It returns false for a value that the
// Go type would not accept; absent values are nil.
type put func(b *backward, value any) bool

// protoField is a field of a Go type in its protobuf message.
type protoField struct {
	name string // in JSON; "" for a struct whose fields are inlined in JSON
	tag  uint64 // number and wire type
	put  put
	// always: the field is encoded even if absent, as fields without a pointer are. each:
	// the value is a list, and each element a field. entries: the value is a map, and each
	// entry a field.
	always, each, entries bool
}

// protoMessage encodes the fields of a Go struct, in the order of their numbers.
type protoMessage struct{ fields []protoField }

// put encodes the message of fields. It omits absent fields that have a pointer.
func (m *protoMessage) put(b *backward, value any) bool {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return false
	}
	for i := len(m.fields) - 1; i >= 0; i-- {
		f := &m.fields[i]
		of := value
		if f.name != "" {
			of = fields[f.name]
		}
		if !f.write(b, of) {
			return false
		}
	}
	return true
}

// write encodes the field, or copies the fragment of its value.
func (f *protoField) write(b *backward, value any) bool {
	if value == nil || f.name == "" {
		return value == nil && !f.always || f.writeAnew(b, value)
	}
	raw, p := b.known.find(value, f)
	if raw != nil {
		b.bytes(raw)
		return true
	}
	end := b.written()
	ok := f.writeAnew(b, value)
	if ok {
		b.known.end(p, b.buf[b.at:len(b.buf)-end])
	}
	return ok
}

func (f *protoField) writeAnew(b *backward, value any) bool {
	switch {
	case f.each:
		list, ok := value.([]any)
		for _, item := range slices.Backward(list) {
			if !f.writeItem(b, item) {
				return false
			}
		}
		return ok
	case f.entries:
		return f.writeEntries(b, value)
	}
	if !f.put(b, value) {
		return false
	}
	b.varint(f.tag)
	return true
}

func (f *protoField) writeItem(b *backward, item any) bool {
	raw, p := b.known.find(item, f)
	if raw != nil {
		b.bytes(raw)
		return true
	}
	end := b.written()
	if item == nil || !f.put(b, item) {
		return false
	}
	b.varint(f.tag)
	b.known.end(p, b.buf[b.at:len(b.buf)-end])
	return true
}

// writeEntries encodes a map: each entry is a message of a key and a value, in the order of
// the keys.
func (f *protoField) writeEntries(b *backward, value any) bool {
	entries, ok := value.(map[string]any)
	if !ok {
		return false
	}
	var few [FewFields]string
	names := few[:0]
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		end := b.written()
		if entries[name] == nil || !f.put(b, entries[name]) {
			return false
		}
		b.varint(2<<3 | WireBytes)
		b.text(name)
		b.varint(uint64(len(name)))
		b.varint(1<<3 | WireBytes)
		b.length(end)
		b.varint(f.tag)
	}
	return true
}

const (
	wireVarint  = 0
	wireFixed64 = 1
	WireBytes   = 2
)

func putString(b *backward, value any) bool {
	s, ok := value.(string)
	b.text(s)
	b.varint(uint64(len(s)))
	return ok || value == nil
}

func putBytes(b *backward, value any) bool {
	s, ok := value.(string)
	raw, err := base64.StdEncoding.DecodeString(s)
	b.bytes(raw)
	b.varint(uint64(len(raw)))
	return ok && err == nil
}

func putBool(b *backward, value any) bool {
	is, ok := value.(bool)
	n := uint64(0)
	if is {
		n = 1
	}
	b.varint(n)
	return ok || value == nil
}

// putInt returns the encoder of integers of this many bits.
func putInt(bits int) put {
	least, most := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
	return func(b *backward, value any) bool {
		n, ok := value.(int64)
		b.varint(uint64(n))
		return (ok || value == nil) && n >= least && n <= most
	}
}

func putFloat(b *backward, value any) bool {
	var x float64
	switch v := value.(type) {
	case nil:
	case float64:
		x = v
	case int64:
		x = float64(v)
	default:
		return false
	}
	b.room(8)
	binary.LittleEndian.PutUint64(b.buf[b.at:], math.Float64bits(x))
	return true
}

// inside returns the encoder of a message with its length.
func inside(message put) put {
	return func(b *backward, value any) bool {
		end := b.written()
		ok := message(b, value)
		b.length(end)
		return ok
	}
}

func putQuantity(b *backward, value any) bool {
	text, ok := value.(string)
	if value == nil {
		text = "0"
	} else if q, err := resource.ParseQuantity(text); !ok || err != nil || q.String() != text {
		return false
	}
	putString(b, text)
	b.varint(1<<3 | WireBytes)
	return true
}

func putIntOrString(b *backward, value any) bool {
	text, isText := value.(string)
	n, isInt := value.(int64)
	kind := uint64(0)
	if isText {
		kind = 1
	}
	putString(b, text)
	b.varint(3<<3 | WireBytes)
	b.varint(uint64(int64(int32(n))))
	b.varint(2 << 3)
	b.varint(kind)
	b.varint(1 << 3)
	return (isText || isInt || value == nil) && int64(int32(n)) == n
}

// putTime returns the encoder of times, in seconds or microseconds.
func putTime(layout string, micros bool) put {
	return func(b *backward, value any) bool {
		text, ok := value.(string)
		if value == nil {
			return true
		}
		at, err := time.Parse(layout, text)
		if !ok || err != nil {
			return false
		}
		if at.IsZero() {
			return true
		}
		nanos := 0
		if micros {
			nanos = at.Nanosecond() / 1000 * 1000
		}
		b.varint(uint64(nanos))
		b.varint(2 << 3)
		b.varint(uint64(at.Unix()))
		b.varint(1 << 3)
		return true
	}
}

// putRaw encodes a value of any type as its JSON.
func putRaw(b *backward, value any) bool {
	if value == nil {
		return true
	}
	b.json.To, b.json.Known = b.json.To[:0], b.known
	err := b.json.value(value)
	b.bytes(b.json.To)
	b.varint(uint64(len(b.json.To)))
	b.varint(1<<3 | WireBytes)
	return err == nil
}

// ProtoMessages has the encoders of the Go types of built-in kinds, each derived from its
// type on first use.
type ProtoMessages struct {
	scratch sync.Pool // of *backward
	mu      struct {
		sync.Mutex
		of map[reflect.Type]*protoMessage // nil: only the type itself can encode it
	}
}

// Append appends the message of a built-in kind's fields. It returns false if the Go type
// must encode it: a type with its own encoding, or a value that is not of the type of its
// field.
func (p *ProtoMessages) Append(to []byte, kind schema.GroupVersionKind, fields map[string]any, known *OpenFragments) ([]byte, bool) {
	t := models.Scheme().AllKnownTypes()[kind]
	if t == nil {
		return to, false
	}
	m := p.get(t)
	if m == nil {
		return to, false
	}
	b, ok := p.scratch.Get().(*backward)
	if !ok {
		b = &backward{buf: make([]byte, 16<<10)}
	}
	defer p.scratch.Put(b)
	b.at, b.known = len(b.buf), known
	defer func() { b.known = nil; b.json.Clear() }()
	if !m.put(b, fields) {
		return to, false
	}
	return append(to, b.buf[b.at:]...), true
}

func Envelope(apiVersion, kind string, raw []byte) ([]byte, error) {
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	return append([]byte("k8s\x00"), body...), err
}

// EnvelopeAround returns the bytes before and after a message of this size in its envelope.
func EnvelopeAround(apiVersion, kind string, size int) (before, after []byte, err error) {
	whole, err := Envelope(apiVersion, kind, []byte{}) // an empty field: its number and a zero
	if err != nil {
		return nil, nil, err
	}
	at := len("k8s\x00") + FieldSize((&runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}).Size()) + 1
	before = binary.AppendUvarint(bytes.Clone(whole[:at]), uint64(size))
	return before, whole[at+1:], nil
}

// FieldSize returns the number of bytes that AppendField appends for a content of this
// size.
func FieldSize(content int) int {
	size := content + 2
	for n := content; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

// AppendField appends a field with a length.
func AppendField(to []byte, number byte, content []byte) []byte {
	to = append(to, number<<3|2)
	to = binary.AppendUvarint(to, uint64(len(content)))
	return append(to, content...)
}
