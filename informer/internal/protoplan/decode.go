// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// ErrUnusual means that a message is malformed or has not the form that plans
// read: the type's own Unmarshal decides.
var ErrUnusual = errors.New("the message does not have the form that the generated Marshal writes")

// Options of one decoding.
type Options struct {
	// Table with the parts of other objects. Nil: nothing is shared.
	Table *share.Table
	// OnlyStrings shares strings alone, for objects that may be modified.
	OnlyStrings bool
	// ManagedFields are decoded too.
	ManagedFields bool
}

// Sizes is the heap memory of an object in bytes, rounded to Go's size classes
// as far as they are known.
type Sizes struct {
	Own    uint32 // allocated for this object alone
	Shared uint32 // of parts in the table

	// Skipped are the bytes of managed fields in the message.
	Skipped uint32
}

// Decode decodes raw into a zero value, given as the pointer to it that the plan
// was compiled for. The value does not refer to raw. After an error the value is
// incomplete. The only error is ErrUnusual, unless into has another type.
func (p *Plan) Decode(raw []byte, into any, opts Options) (Sizes, error) {
	v := reflect.ValueOf(into)
	if v.Type() != p.pointer || v.IsNil() {
		return Sizes{}, fmt.Errorf("decode protobuf into %T by the plan for %s", into, p.pointer)
	}
	s := p.states.Get().(*state)
	defer p.states.Put(s)
	return s.decode(p.root, raw, v.UnsafePointer(), opts)
}

// deepest nesting that is decoded.
const deepest = 100

// state is the state of one decoding.
type state struct {
	opts   Options
	whole  bool // parts are shared, not only strings
	depth  int
	own    int64
	shared int64
	past   int64 // bytes of managed fields
	block  block
	pairs  []pair
	lately [512]string // shared ones, by a hash
}

// decode decodes the whole object at into.
func (s *state) decode(m *message, raw []byte, into unsafe.Pointer, opts Options) (Sizes, error) {
	s.opts, s.whole = opts, opts.Table != nil && !opts.OnlyStrings
	s.own, s.shared, s.past, s.depth = roundUp(int64(m.size), true), 0, 0, 0
	defer s.clear()
	if !s.message(m, raw, into) {
		return Sizes{}, ErrUnusual
	}
	s.own += s.block.flush(0)
	return Sizes{Own: clamp(s.own), Shared: clamp(s.shared), Skipped: clamp(s.past)}, nil
}

// clear removes the references to the object.
func (s *state) clear() {
	s.opts = Options{}
	s.block.clear()
	clear(s.pairs[:cap(s.pairs)])
	s.pairs = s.pairs[:0]
	if cap(s.pairs) > 1<<10 {
		s.pairs = nil
	}
}

func clamp(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }

// message decodes a message into the struct at into. It reports false for an
// unusual message, as all functions here do.
func (s *state) message(m *message, raw []byte, into unsafe.Pointer) bool {
	if s.depth++; s.depth > deepest || m.broken {
		return false
	}
	last := uint32(0)
	for at := 0; at < len(raw); {
		start := at
		tag := uint32(raw[at])
		at++
		if tag >= 1<<7 {
			if at == len(raw) || raw[at] >= 1<<7 {
				return false
			}
			tag = tag&(1<<7-1) | uint32(raw[at])<<7
			at++
		}
		number, wire := tag>>3, uint8(tag&7)
		var f *field
		if number < uint32(len(m.fields)) {
			f = m.fields[number]
		}
		if number == 0 || number < last || number == last && f != nil {
			return false
		}
		last = number
		if f == nil || f.kind == left || f.managed && !s.opts.ManagedFields {
			if at = skip(raw, at, wire); at < 0 {
				return false
			}
			if f != nil { // all its values are skipped
				last--
				if f.kind != left && wire != f.wire {
					return false
				}
				if f.managed {
					s.past += int64(at - start)
				}
			}
			continue
		}
		if wire != f.wire {
			return false
		}
		p := unsafe.Add(into, f.offset)
		switch {
		case f.shape == list || f.shape == dict:
			end, count := runOf(raw, start, at)
			if end < 0 || !s.several(f, raw[start:end], at-start, count, p) {
				return false
			}
			at = end
		case wire == bytesOf:
			body, next, ok := lengthAt(raw, at)
			switch {
			case !ok:
			case f.shape == pointer:
				ok = s.behind(f, raw[at:next], body, p)
			default:
				ok = s.value(f, body, p)
			}
			if !ok {
				return false
			}
			at = next
		default:
			next := s.number(f, raw, at, p)
			if next < 0 {
				return false
			}
			at = next
		}
	}
	s.depth--
	return true
}

// number decodes the number at raw[at:] and returns where it ends.
func (s *state) number(f *field, raw []byte, at int, p unsafe.Pointer) (end int) {
	v, end := numberAt(f.kind, raw, at)
	if end < 0 {
		return end
	}
	if f.shape == pointer {
		return s.numberBehind(f, v, end, p)
	}
	put(f.kind, v, p)
	return end
}

// numberBehind stores a new pointer to a number at p.
func (s *state) numberBehind(f *field, v uint64, end int, p unsafe.Pointer) int {
	var to unsafe.Pointer
	switch f.kind {
	case boolean:
		to = unsafe.Pointer(new(bool))
	case int32s, float32s:
		to = unsafe.Pointer(new(uint32))
	default:
		to = unsafe.Pointer(new(uint64))
	}
	put(f.kind, v, to)
	s.own += int64(f.size)
	*(*unsafe.Pointer)(p) = to
	return end
}

// put stores a number at p.
func put(k kind, v uint64, p unsafe.Pointer) {
	switch k {
	case boolean:
		*(*bool)(p) = v != 0
	case int32s, float32s:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// value decodes one value of bytes to p.
func (s *state) value(f *field, body []byte, p unsafe.Pointer) bool {
	switch f.kind {
	case text:
		s.text(f, &f.text, body, p)
		return true
	case struc:
		return s.message(f.of, body, p)
	case data:
		return s.data(f, body, p)
	case instant, microInstant:
		return moment(f.kind, body, p)
	}
	if f.costly.Protobuf(body) != nil {
		return false
	}
	// Its memory is not known; it is about as much as its bytes.
	s.own += roundUp(int64(len(body)), false)
	of := reflect.NewAt(f.elem, p)
	switch f.elem.Kind() {
	case reflect.Slice:
		of.Elem().Set(reflect.MakeSlice(f.elem, 0, 0))
	case reflect.Map:
		of.Elem().Set(reflect.MakeMap(f.elem))
	}
	return of.Interface().(unmarshaler).Unmarshal(body) == nil
}

// text stores the string of content body at p, if it is not shared after the
// rest of the object.
func (s *state) text(f *field, site *share.Site, body []byte, p unsafe.Pointer) {
	switch {
	case len(body) == 0:
		return
	case !f.alone && s.block.repeat(body, p):
		return
	}
	if str, shared := s.sharedText(site, body); shared {
		*(*string)(p) = str
		s.shared += roundUp(int64(len(body)), false)
		return
	}
	if f.alone {
		*(*string)(p) = string(body)
		s.own += roundUp(int64(len(body)), false)
		return
	}
	s.block.add(body, p)
}

// sharedText returns the shared string of content body, if there is one. Those
// of the objects before are found without the table.
func (s *state) sharedText(site *share.Site, body []byte) (str string, shared bool) {
	n := len(body)
	if s.opts.Table == nil || n == 0 {
		return "", false
	}
	last := &s.lately[(n*31^int(body[0])*7^int(body[n/2])*53^int(body[n-1]))%len(s.lately)]
	if *last == string(body) {
		return *last, true
	}
	if str, shared = s.opts.Table.String(site, body); shared && n <= longestLately {
		*last = str
	}
	return str, shared
}

// longestLately is the longest of the strings that are kept between objects,
// until a collection of garbage or two.
const longestLately = 128

// data stores a copy of body at p. It is not nil.
func (s *state) data(f *field, body []byte, p unsafe.Pointer) bool {
	if len(body) == 0 {
		*(*[]byte)(p) = []byte{}
		return true
	}
	own := make([]byte, len(body))
	copy(own, body)
	*(*[]byte)(p) = own
	s.own += roundUp(int64(len(body)), false)
	return true
}

// behind decodes one value to memory of its own and stores its pointer at p. raw
// is its length with its body.
func (s *state) behind(f *field, raw, body []byte, p unsafe.Pointer) bool {
	part, found := s.begin(f, raw)
	if found {
		*(*unsafe.Pointer)(p) = part.found.Ptr
		return true
	}
	var to unsafe.Pointer
	if f.kind == text {
		to = unsafe.Pointer(new(string))
	} else {
		to = reflect.New(f.elem).UnsafePointer()
	}
	s.own += roundUp(int64(f.size), true)
	*(*unsafe.Pointer)(p) = to
	if !s.value(f, body, to) {
		return false
	}
	if part.keep.Wanted() {
		*(*unsafe.Pointer)(p) = s.end(f, raw, part, share.Value{Ptr: to}).Ptr
	}
	return true
}

// part is a part of the object that other objects may share.
type part struct {
	found share.Value
	keep  share.Ticket
	mark  mark  // of the block, before the part
	own   int64 // before the part
}

// begin searches the part with these bytes. If it is wanted, the strings from
// now on are the part's.
func (s *state) begin(f *field, raw []byte) (p part, found bool) {
	if !s.whole || f.size < smallest && f.shape == pointer {
		return part{}, false
	}
	p.found, found, p.keep = s.opts.Table.Look(&f.part, raw)
	if found {
		s.shared += int64(p.found.Size)
		return p, true
	}
	if p.keep.Wanted() {
		p.mark, p.own = s.block.begin(), s.own
	}
	return p, false
}

// smallest allocation that is a part: smaller ones may share memory with others.
const smallest = 16

// end completes a part that is wanted and returns the value to use.
func (s *state) end(f *field, raw []byte, p part, v share.Value) share.Value {
	s.own += s.block.end(p.mark)
	v.Size = clamp(s.own - p.own)
	s.own = p.own // the table's
	s.shared += int64(v.Size)
	return s.opts.Table.Keep(&f.part, raw, v, p.keep)
}
