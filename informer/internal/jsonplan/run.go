// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"unsafe"

	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
)

// run is one decoding. Its methods read the value at a position into memory of
// the type of a node, which is zero, and return the position after it, or bad:
// the text is not JSON, does not fit the type, or has a key twice.
type run struct {
	reader
	plan    *Plan
	table   *share.Table // nil: nothing is shared
	whole   bool         // share more than strings
	sizes   Sizes
	keeping int // values for the table around the position

	loans    []*string // borrowed strings
	unquoted []byte
	boxes    []string // room for strings in interfaces
	pairs    []pair   // of the maps around the position
	items    []item   // of the maps and lists around the position
}

// sliceOf is the memory of a slice.
type sliceOf struct {
	data     unsafe.Pointer
	len, cap int
}

func (r *run) value(n *node, p unsafe.Pointer, i int) int {
	b := r.b
	if uint(i) >= uint(len(b)) {
		return bad
	}
	c := b[i]
	switch n.form {
	case formString:
		if c != '"' {
			return null(b, i)
		}
		return r.string(n, (*string)(p), i)
	case formRecord:
		if c != '{' {
			return null(b, i)
		}
		return r.record(n.record, p, i)
	case formPointer:
		if c == 'n' {
			return null(b, i)
		}
		if r.whole && n.shares {
			return r.part(n, p, i)
		}
		return r.pointer(n, p, i)
	case formSlice:
		if c != '[' {
			return null(b, i)
		}
		if r.whole {
			return r.part(n, p, i)
		}
		return r.slice(n, p, i)
	case formStrings:
		if c != '{' {
			return null(b, i)
		}
		if r.whole {
			return r.part(n, p, i)
		}
		return r.strings(n, p, i)
	case formBool:
		return boolean(b, i, (*bool)(p))
	case formInt:
		return signed(n, p, b, i)
	case formUint:
		return unsigned(n, p, b, i)
	case formFloat:
		return float(n, p, b, i)
	case formTime:
		if end := readTime(p, b, i); end > 0 {
			return end
		}
		return r.byMethod(n, p, i)
	case formMicroTime:
		if end := readMicroTime(p, b, i); end > 0 {
			return end
		}
		return r.byMethod(n, p, i)
	case formIntOrString:
		if end := r.intOrString(n, p, i); end > 0 {
			return end
		}
		return r.byMethod(n, p, i)
	case formAny:
		return r.any(n.tree, (*any)(p), i)
	case formTree:
		if c != '{' {
			return null(b, i)
		}
		if r.whole && n != r.plan.root {
			return r.part(n, p, i)
		}
		return r.alone(n, p, i)
	case formSkipped:
		return valid(b, i, r.depth)
	}
	return r.seldom(n, p, i)
}

// seldom is value for forms that objects have few of.
func (r *run) seldom(n *node, p unsafe.Pointer, i int) int {
	switch n.form {
	case formBytes:
		switch r.b[i] {
		case '"':
			return r.bytes((*[]byte)(p), i)
		case '[':
			return r.slice(n, p, i)
		}
		return null(r.b, i)
	case formQuantities:
		if r.b[i] != '{' {
			return null(r.b, i)
		}
		if r.whole {
			return r.part(n, p, i)
		}
		return r.quantities(n, p, i)
	case formMap:
		if r.b[i] != '{' {
			return null(r.b, i)
		}
		if r.whole {
			return r.part(n, p, i)
		}
		return r.mapping(n, p, i)
	case formJSON:
		return r.byMethod(n, p, i)
	case formText:
		return r.byText(n, p, i)
	}
	return r.byReference(n, p, i)
}

// null returns the position after null at i, which leaves a value as it is.
func null(b []byte, i int) int { return literal(b, i, "null") }

func boolean(b []byte, i int, p *bool) int {
	if b[i] == 't' {
		*p = true
		return literal(b, i, "true")
	}
	if b[i] == 'f' {
		return literal(b, i, "false")
	}
	return null(b, i)
}

// record reads the object at i into a struct.
func (r *run) record(plan *record, p unsafe.Pointer, i int) int {
	if r.depth++; r.depth > deepest {
		return bad
	}
	b := r.b
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		r.depth--
		return i + 1
	}
	var seen [mostFields / 64]uint64
	next := &plan.first
	for {
		if i >= len(b) || b[i] != '"' {
			return bad
		}
		var f *field
		at := int(next.Load())
		if at < len(plan.fields) && follows(b, i+1, plan.fields[at].name) {
			f = &plan.fields[at]
			i += 1 + len(f.name)
		} else {
			end, plain := quoted(b, i+1)
			if end < 0 {
				return bad
			}
			name := b[i+1 : end]
			if !plain {
				name = unquote(nil, name)
			}
			if at = plan.find(name); at >= 0 {
				f = &plan.fields[at]
				next.Store(uint32(at))
			}
			i = end
		}
		if i = value(b, i+1); i < 0 {
			return bad
		}
		if f == nil {
			i = valid(b, i, r.depth)
		} else {
			next = &f.next
			if seen[at/64]&(1<<(at%64)) != 0 {
				return bad
			}
			seen[at/64] |= 1 << (at % 64)
			to := p
			for _, h := range f.hops {
				to = embeddedPointer(to, h)
			}
			i = r.value(f.node, unsafe.Add(to, f.at), i)
		}
		if i < 0 {
			return bad
		}
		if i = space(b, i); i >= len(b) {
			return bad
		}
		if b[i] == '}' {
			r.depth--
			return i + 1
		}
		if b[i] != ',' {
			return bad
		}
		i = space(b, i+1)
	}
}

// follows reports whether name and a quote are at i.
func follows(b []byte, i int, name string) bool {
	end := i + len(name)
	return end < len(b) && b[end] == '"' && string(b[i:end]) == name
}

// embeddedPointer returns the struct that an embedded pointer points to.
func embeddedPointer(p unsafe.Pointer, h hop) unsafe.Pointer {
	to := (*unsafe.Pointer)(unsafe.Add(p, h.at))
	if *to == nil {
		*to = reflect.New(h.typ).UnsafePointer()
	}
	return *to
}

func (r *run) pointer(n *node, p unsafe.Pointer, i int) int {
	to := reflect.New(n.elem.typ).UnsafePointer()
	*(*unsafe.Pointer)(p) = to
	r.sizes.Own += sized(int(n.elem.size))
	return r.value(n.elem, to, i)
}

// slice reads the array at i into a slice of exactly its length.
func (r *run) slice(n *node, p unsafe.Pointer, i int) int {
	count, end := r.count(i)
	if end < 0 || r.b[end-1] != ']' || r.depth >= deepest {
		return bad
	}
	s := (*sliceOf)(p)
	if count == 0 {
		s.data = unsafe.Pointer(unsafe.SliceData([]struct{}{}))
		return end
	}
	if !r.fits(count, n.elem.size, i) {
		return bad
	}
	reflect.NewAt(n.typ, p).Elem().Grow(count)
	s.len, s.cap = count, count
	r.sizes.Own += sized(count * int(n.elem.size))
	r.depth++
	b := r.b
	for at := range count {
		i = space(b, i+1)
		if i = r.value(n.elem, unsafe.Add(s.data, uintptr(at)*n.elem.size), i); i < 0 {
			return bad
		}
		i = space(b, i)
		if i >= len(b) || b[i] != ',' && at < count-1 {
			return bad
		}
	}
	if b[i] != ']' {
		return bad
	}
	r.depth--
	return i + 1
}

// bytes reads base64.
func (r *run) bytes(p *[]byte, i int) int {
	end, plain := quoted(r.b, i+1)
	if end < 0 {
		return bad
	}
	content := r.b[i+1 : end]
	if !plain {
		content = unquote(nil, content)
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(content)))
	n, err := base64.StdEncoding.Decode(out, content)
	if err != nil {
		return bad
	}
	*p = out[:n]
	r.sizes.Own += sized(len(out))
	return end + 1
}

func signed(n *node, p unsafe.Pointer, b []byte, i int) int {
	if b[i] == 'n' {
		return null(b, i)
	}
	v, end := readInt(b, i)
	if end < 0 {
		return bad
	}
	switch n.size {
	case 4:
		if v != int64(int32(v)) {
			return bad
		}
		*(*int32)(p) = int32(v)
	case 8:
		*(*int64)(p) = v
	case 2:
		if v != int64(int16(v)) {
			return bad
		}
		*(*int16)(p) = int16(v)
	default:
		if v != int64(int8(v)) {
			return bad
		}
		*(*int8)(p) = int8(v)
	}
	return end
}

// readInt returns the whole number at i, and the position after it.
func readInt(b []byte, i int) (v int64, end int) {
	end, integer := number(b, i)
	if end < 0 || !integer {
		return 0, bad
	}
	const surely = 18 // digits that fit, with a sign
	if end-i > surely {
		v, err := strconv.ParseInt(string(b[i:end]), 10, 64)
		if err != nil {
			return 0, bad
		}
		return v, end
	}
	at, negative := i, b[i] == '-'
	if negative {
		at++
	}
	for ; at < end; at++ {
		v = v*10 + int64(b[at]-'0')
	}
	if negative {
		v = -v
	}
	return v, end
}

func unsigned(n *node, p unsafe.Pointer, b []byte, i int) int {
	if b[i] == 'n' {
		return null(b, i)
	}
	end, integer := number(b, i)
	if end < 0 || !integer {
		return bad
	}
	v, err := strconv.ParseUint(string(b[i:end]), 10, int(8*n.size))
	if err != nil {
		return bad
	}
	switch n.size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
	return end
}

func float(n *node, p unsafe.Pointer, b []byte, i int) int {
	if b[i] == 'n' {
		return null(b, i)
	}
	end, _ := number(b, i)
	if end < 0 {
		return bad
	}
	v, err := strconv.ParseFloat(string(b[i:end]), int(8*n.size))
	if err != nil {
		return bad
	}
	if n.size == 4 {
		if math.Abs(v) > math.MaxFloat32 {
			return bad
		}
		*(*float32)(p) = float32(v)
		return end
	}
	*(*float64)(p) = v
	return end
}

// byMethod calls the type's UnmarshalJSON with the bytes of the value.
func (r *run) byMethod(n *node, p unsafe.Pointer, i int) int {
	end := valid(r.b, i, r.depth)
	if end < 0 || n.costly.JSON(r.b[i:end]) != nil || reflect.NewAt(n.typ, p).Interface().(json.Unmarshaler).UnmarshalJSON(r.b[i:end:end]) != nil {
		return bad
	}
	return end
}

// byText calls the type's UnmarshalText with the string.
func (r *run) byText(n *node, p unsafe.Pointer, i int) int {
	if r.b[i] != '"' {
		return null(r.b, i)
	}
	end, plain := quoted(r.b, i+1)
	if end < 0 || n.costly.JSON(r.b[i:end+1]) != nil {
		return bad
	}
	content := r.b[i+1 : end : end]
	if !plain {
		content = unquote(nil, content)
	}
	if reflect.NewAt(n.typ, p).Interface().(encoding.TextUnmarshaler).UnmarshalText(content) != nil {
		return bad
	}
	return end + 1
}

// byReference has the reference decode the value as the only field of a struct.
func (r *run) byReference(n *node, p unsafe.Pointer, i int) int {
	end := valid(r.b, i, r.depth)
	if end < 0 || n.costly.JSON(r.b[i:end]) != nil {
		return bad
	}
	text := append(append([]byte(`{"X":`), r.b[i:end]...), '}')
	if kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.NewAt(n.alone, p).Interface()) != nil {
		return bad
	}
	if n.prune != nil {
		fields.Prune(reflect.NewAt(n.typ, p).Interface(), n.prune)
	}
	return end
}
