// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonweight

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// shape is how a type takes a JSON value.
type shape uint8

const (
	shapeSkipped shape = iota // no field takes it: nothing is allocated
	shapeAny                  // interface, decoded into maps and slices
	shapeScalar               // string, number, boolean
	shapeStruct
	shapeList
	shapeBytes // a string in base64, or a list of numbers
	shapeMap
	shapePointer
	shapeRaw    // the bytes are kept as they are
	shapeOpaque // the type's own UnmarshalJSON
)

// Plan is how values of one type are decoded. Make it with Of or Any; nothing changes
// it afterwards.
type Plan struct {
	shape  shape
	fields map[string]*Plan // of a struct, by their names in JSON
	elem   *Plan            // of a list or a map, what a pointer leads to, the largest within its own decoding
	also   *Plan            // of a raw value that is decoded later: what it is then
	partly bool             // something within is decoded later
	takes  byte             // how a scalar that it takes begins: '"', '0' or 't'
	nests  bool             // its own decoding has others within, each of which reads the text anew
	size   int64            // bytes that a value takes within what holds it
	behind int64            // bytes that are allocated for a value that is not null
	zero   empty            // what an empty value is encoded as
	rates  rates
}

// empty is an empty value, encoded.
type empty struct{ text, tree int64 }

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawMessage      = reflect.TypeFor[json.RawMessage]()
)

// Any is the plan of values that are decoded into maps, slices and scalars.
func Any() *Plan {
	p := &Plan{shape: shapeAny, size: 16}
	p.rate()
	return p
}

// Of compiles the plan of a type. Keep it: it depends on the type alone.
func Of(t reflect.Type) *Plan { return (&compiler{begun: map[reflect.Type]*Plan{}}).plan(t) }

// ToDecode is Of for who asks for Decoded alone. It is made in a small part of the time.
func ToDecode(t reflect.Type) *Plan {
	return (&compiler{begun: map[reflect.Type]*Plan{}, lean: true}).plan(t)
}

// compiler makes the plan of a type. Those of begun are being made: types may contain
// themselves.
type compiler struct {
	begun map[reflect.Type]*Plan
	lean  bool // what empty values are encoded as is left out
}

func (c *compiler) plan(t reflect.Type) *Plan {
	p := c.compile(t)
	p.rate()
	return p
}

func (c *compiler) encoded(t reflect.Type) empty {
	if c.lean {
		return empty{}
	}
	return encoded(t)
}

// With is a copy of p in which the value at the path of names, or each of a list there,
// is kept raw and decoded later, as another plan says.
func (p *Plan) With(as *Plan, path ...string) *Plan {
	out := *p
	out.partly = true
	switch {
	case p.shape == shapePointer || p.shape == shapeList:
		out.elem = p.elem.With(as, path...)
		return &out
	case len(path) == 0:
		out.also = as
		return &out
	}
	out.fields = make(map[string]*Plan, len(p.fields))
	for name, field := range p.fields {
		out.fields[name] = field
	}
	if field := p.fields[path[0]]; field != nil {
		out.fields[path[0]] = field.With(as, path[1:]...)
	}
	return &out
}

// compile makes the plan of t.
func (c *compiler) compile(t reflect.Type) *Plan {
	if p := c.begun[t]; p != nil {
		return p
	}
	p := &Plan{size: int64(t.Size())}
	c.begun[t] = p
	if t.Kind() == reflect.Pointer {
		if !ownDecoding(t.Elem()) {
			*p = c.pointed(c.compile(t.Elem()), t)
			return p
		}
		p.behind = int64(t.Elem().Size())
		t = t.Elem()
	}
	p.zero = c.encoded(t)
	switch {
	case keepsBytes(t):
		p.shape = shapeRaw
		return p
	case ownDecoding(t):
		p.shape, p.elem = shapeOpaque, &Plan{}
		p.nests = c.largest(p.elem, t, t, map[reflect.Type]bool{})
		return p
	}
	switch t.Kind() {
	case reflect.Struct:
		p.shape, p.fields = shapeStruct, map[string]*Plan{}
		c.addFields(p.fields, t)
	case reflect.Slice, reflect.Array:
		p.shape, p.elem = shapeList, c.compile(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			p.shape = shapeBytes
		}
	case reflect.Map:
		p.shape, p.elem = shapeMap, c.compile(t.Elem())
	case reflect.Interface:
		p.shape = shapeAny
	case reflect.String:
		p.shape, p.takes = shapeScalar, '"'
	case reflect.Bool:
		p.shape, p.takes = shapeScalar, 't'
	default:
		p.shape, p.takes = shapeScalar, '0'
	}
	return p
}

// pointed is the plan of a pointer to what p is of. A type that contains itself may
// be compiled half only by now, so that it is looked up when it is met.
func (c *compiler) pointed(target *Plan, t reflect.Type) Plan {
	return Plan{shape: shapePointer, elem: target, size: int64(t.Size()), behind: int64(t.Elem().Size()), zero: c.encoded(t.Elem())}
}

// addFields adds the fields of a struct, also those of structs that it embeds.
func (c *compiler) addFields(fields map[string]*Plan, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			// An embedded struct that is a pointer is allocated with its first field.
			embedded := map[string]*Plan{}
			c.addFields(embedded, inner)
			for name, p := range embedded {
				if f.Type.Kind() == reflect.Pointer {
					with := *p
					with.behind += int64(inner.Size())
					p = &with
				}
				if fields[name] == nil {
					fields[name] = p
				}
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		if fields[name] = c.compile(f.Type); strings.Contains(options, "string") {
			fields[name] = &Plan{shape: shapeOpaque, elem: &Plan{size: 16}, behind: int64(inner.Size()), zero: empty{text: 24, tree: 48}}
		}
	}
}

// ownDecoding says whether t decides itself what it makes of JSON.
func ownDecoding(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Interface && (p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler))
}

// keepsBytes says whether t has its own decoding that copies the text: it has a field
// Raw of bytes, and nothing else that JSON could be put into.
func keepsBytes(t reflect.Type) bool {
	if t == rawMessage {
		return true
	}
	if t.Kind() != reflect.Struct || !ownDecoding(t) {
		return false
	}
	raw := false
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Name == "Raw" && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8:
			raw = true
		case f.Type.Kind() != reflect.Interface:
			return false
		}
	}
	return raw
}

// largest makes p as large as the largest value that t's fields lead to, and as long
// when it is encoded. It says whether they lead to a type with its own decoding, of
// which root is one.
func (c *compiler) largest(p *Plan, root, t reflect.Type, seen map[reflect.Type]bool) (nests bool) {
	if seen[t] {
		return t == root
	}
	seen[t] = true
	p.size = max(p.size, int64(t.Size()))
	nests = t != root && ownDecoding(t) && !keepsBytes(t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return c.largest(p, root, t.Elem(), seen) || nests
	case reflect.Struct:
		zero := c.encoded(t)
		p.zero.text, p.zero.tree = max(p.zero.text, zero.text), max(p.zero.tree, zero.tree)
		for i := range t.NumField() {
			nests = c.largest(p, root, t.Field(i).Type, seen) || nests
		}
	}
	return nests
}

// encoded is what an empty value of t is as JSON. A type that cannot be encoded is
// taken for one that is small.
func encoded(t reflect.Type) (out empty) {
	defer func() {
		if recover() != nil {
			out = empty{text: 64, tree: 512} // its own encoding does not take an empty value
		}
	}()
	text, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return empty{text: 64, tree: 512}
	}
	w, _ := Any().Weigh(text, Unlimited, nil)
	return empty{text: int64(len(text)), tree: w.Tree - ofDecoder}
}
