// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// shape is how a type decodes a JSON value.
type shape uint8

const (
	shapeSkipped shape = iota // no field for it: nothing is allocated
	shapeAny                  // an interface, decoded into maps and slices
	shapeScalar               // string, number, boolean
	shapeStruct
	shapeList
	shapeBytes // a base64 string, or a list of numbers
	shapeMap
	shapePointer
	shapeRaw    // the bytes are kept
	shapeOpaque // the type's own UnmarshalJSON
)

// JSONPlan describes how values of a type are decoded. Make it with JSONPlanOf or AnyJSON; it
// is immutable.
type JSONPlan struct {
	shape  shape
	fields map[string]*JSONPlan // of a struct, by JSON name
	elem   *JSONPlan            // of a list, map or pointer; for own decoding the largest type within
	also   *JSONPlan            // of a raw value that is decoded later
	partly bool                 // something within is decoded later
	takes  byte                 // first byte of the scalars it accepts: '"', '0' or 't'
	nests  bool                 // its own decoding contains others, each of which reads the text again
	size   int64                // bytes of a value within its container
	behind int64                // bytes allocated for a value other than null
	zero   empty                // encoding of an empty value
	rates  rates
}

// empty is the size of an encoded empty value.
type empty struct{ text, tree int64 }

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawMessage      = reflect.TypeFor[json.RawMessage]()
)

// AnyJSON returns the plan of values that are decoded into maps, slices and
// scalars.
func AnyJSON() *JSONPlan {
	p := &JSONPlan{shape: shapeAny, size: 16}
	p.rate()
	return p
}

// JSONPlanOf compiles the plan of a type. Cache it: it depends only on the type.
func JSONPlanOf(t reflect.Type) *JSONPlan {
	return (&jsonCompiler{begun: map[reflect.Type]*JSONPlan{}}).plan(t)
}

// JSONPlanToDecode is JSONPlanOf for callers that only need Decoded. It is much faster.
func JSONPlanToDecode(t reflect.Type) *JSONPlan {
	return (&jsonCompiler{begun: map[reflect.Type]*JSONPlan{}, lean: true}).plan(t)
}

// jsonCompiler makes the plan of a type. begun has the unfinished ones, since types
// can contain themselves.
type jsonCompiler struct {
	begun map[reflect.Type]*JSONPlan
	lean  bool // omit the encoding of empty values
}

func (c *jsonCompiler) plan(t reflect.Type) *JSONPlan {
	p := c.compile(t)
	p.rate()
	return p
}

func (c *jsonCompiler) encoded(t reflect.Type) empty {
	if c.lean {
		return empty{}
	}
	return encoded(t)
}

// With returns a copy of p in which the value at the path of names, or each of
// a list there, is kept raw and decoded later by another plan.
func (p *JSONPlan) With(as *JSONPlan, path ...string) *JSONPlan {
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
	out.fields = make(map[string]*JSONPlan, len(p.fields))
	for name, field := range p.fields {
		out.fields[name] = field
	}
	if field := p.fields[path[0]]; field != nil {
		out.fields[path[0]] = field.With(as, path[1:]...)
	}
	return &out
}

func (c *jsonCompiler) compile(t reflect.Type) *JSONPlan {
	if p := c.begun[t]; p != nil {
		return p
	}
	p := &JSONPlan{size: int64(t.Size())}
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
		p.shape, p.elem = shapeOpaque, &JSONPlan{}
		p.nests = c.largest(p.elem, t, t, map[reflect.Type]bool{})
		return p
	}
	switch t.Kind() {
	case reflect.Struct:
		p.shape, p.fields = shapeStruct, map[string]*JSONPlan{}
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

// pointed returns the plan of a pointer to target. That may be unfinished if
// the type contains itself, so it is only evaluated later.
func (c *jsonCompiler) pointed(target *JSONPlan, t reflect.Type) JSONPlan {
	return JSONPlan{shape: shapePointer, elem: target, size: int64(t.Size()), behind: int64(t.Elem().Size()), zero: c.encoded(t.Elem())}
}

// addFields adds the fields of a struct, including those of embedded structs.
func (c *jsonCompiler) addFields(fields map[string]*JSONPlan, t reflect.Type) {
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
			// An embedded pointer to a struct is allocated with its first
			// field.
			embedded := map[string]*JSONPlan{}
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
			fields[name] = &JSONPlan{shape: shapeOpaque, elem: &JSONPlan{size: 16}, behind: int64(inner.Size()), zero: empty{text: 24, tree: 48}}
		}
	}
}

// ownDecoding reports whether t has its own JSON decoding.
func ownDecoding(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Interface && (p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler))
}

// keepsBytes reports whether t has its own decoding that copies the text: it
// has a field Raw of bytes, and no other fields for JSON.
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

// largest makes p as large as the largest value that t's fields lead to, also
// when encoded. It reports whether they lead to another type with its own
// decoding than root.
func (c *jsonCompiler) largest(p *JSONPlan, root, t reflect.Type, seen map[reflect.Type]bool) (nests bool) {
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

// encoded returns the size of an empty value of t as JSON. A type that cannot
// be encoded counts as small.
func encoded(t reflect.Type) (out empty) {
	defer func() {
		if recover() != nil {
			out = empty{text: 64, tree: 512} // its encoding rejects an empty value
		}
	}()
	text, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return empty{text: 64, tree: 512}
	}
	w, _ := AnyJSON().Weigh(text, Unlimited, nil)
	return empty{text: int64(len(text)), tree: w.Tree - ofJSONDecoder}
}
