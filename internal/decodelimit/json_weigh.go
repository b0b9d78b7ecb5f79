// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Unlimited as a limit weighs the whole text.
const Unlimited = math.MaxInt64

// maxDepth limits the nesting of objects and lists. Decoding is recursive, and
// API objects are some dozens of levels deep.
const maxDepth = 1000

// ofJSONDecoder is the fixed cost of any text.
const ofJSONDecoder = 1024

// Weight is what a text takes, in bytes allocated in all. For a plan made by
// With, Tree, Filled and Encoded are those of the value decoded later.
type Weight struct {
	// Decoded is for decoding into the plan's type.
	Decoded int64
	// Tree is for decoding into maps and slices.
	Tree int64
	// Filled is what fields that are missing from the text add to a tree when
	// the typed value is encoded and decoded again.
	Filled int64
	// Encoded is the length of the typed value's encoding.
	Encoded int64
	// Depth of nesting, and the number of Values.
	Depth, Values int
}

// ErrTooDeep is returned by Weigh for a text deeper than maxDepth.
var ErrTooDeep = fmt.Errorf("more than %d levels of objects and lists", maxDepth)

// ErrTooHeavy is returned by Weigh when the cost exceeds the limit. The weight
// is then that of the text so far.
var ErrTooHeavy = errors.New("too much memory when decoded")

var errNotJSON = errors.New("not a JSON text")

// level is an open object or list.
type level struct {
	plan    *JSONPlan
	list    bool
	copied  bool  // its bytes are kept, or passed to the type's own decoding
	started int   // position
	members int64 // so far
	room    int64 // allocated elements of the typed list or map
	tree    int64 // the same for the tree
	later   bool  // kept raw, and decoded later
}

// jsonScale weighs one text.
type jsonScale struct {
	Weight
	text    []byte
	at      int
	levels  []level
	nothing JSONPlan // of values without a field
	typed   bool     // Tree, Filled and Encoded do not count here
}

// Weigh weighs the text, decoded by p, until cost exceeds limit. A nil cost is
// that of decoding. It reads the text once and allocates little. It validates
// only what it needs to find the values, so it accepts some invalid JSON.
func (p *JSONPlan) Weigh(text []byte, limit int64, cost func(Weight) int64) (Weight, error) {
	if cost == nil {
		cost = func(w Weight) int64 { return w.Decoded }
	}
	s := jsonScale{text: text, levels: make([]level, 0, 16), typed: p.partly}
	s.Decoded = ofJSONDecoder
	s.trees(ofJSONDecoder, 0, 0)
	err := s.run(p, limit, cost)
	return s.Weight, err
}

// trees counts what the typed value does not include.
func (s *jsonScale) trees(tree, filled, encoded int64) {
	if !s.typed {
		s.Tree += tree
		s.Filled += filled
		s.Encoded += encoded
	}
}

func (s *jsonScale) run(p *JSONPlan, limit int64, cost func(Weight) int64) error {
	if err := s.value(p); err != nil {
		return err
	}
	for len(s.levels) > 0 {
		if cost(s.Weight) > limit {
			return ErrTooHeavy
		}
		if err := s.member(); err != nil {
			return err
		}
	}
	if s.space() < len(s.text) {
		return fmt.Errorf("offset %d: %w", s.at, errNotJSON)
	}
	return nil
}

// member reads the next member of the innermost level, or its end.
func (s *jsonScale) member() error {
	in := &s.levels[len(s.levels)-1]
	end := byte('}')
	if in.list {
		end = ']'
	}
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == end {
		s.at++
		s.leave(in)
		return nil
	}
	if in.members > 0 {
		if c != ',' {
			return fmt.Errorf("offset %d: %w", s.at, errNotJSON)
		}
		s.at++
		if _, err = s.next(); err != nil {
			return err
		}
	}
	in.members++
	if in.list {
		return s.value(s.element(in))
	}
	key, err := s.quoted()
	if err != nil {
		return err
	}
	if c, err = s.next(); err != nil || c != ':' {
		return fmt.Errorf("offset %d: %w", s.at, errNotJSON)
	}
	s.at++
	return s.value(s.field(in, key))
}

// element counts a further element and returns its plan.
func (s *jsonScale) element(in *level) *JSONPlan {
	s.trees(grow(&in.tree, in.members, 16), 0, 1)
	switch in.plan.shape {
	case shapeAny:
		s.Decoded += grow(&in.room, in.members, 16)
		return in.plan
	case shapeOpaque:
		s.Decoded += grow(&in.room, in.members, max(in.plan.elem.size, 16))
		s.fill(in.plan.elem)
		return in.plan
	case shapeList, shapeBytes:
		s.Decoded += grow(&in.room, in.members, in.plan.elem.size)
		s.fill(in.plan.elem)
		return in.plan.elem
	}
	return &s.nothing
}

// field counts a further member of an object and returns its plan.
func (s *jsonScale) field(in *level, key text) *JSONPlan {
	s.trees(growMap(&in.tree, in.members, 32)+key.kept(), 0, key.encoded()+2)
	switch in.plan.shape {
	case shapeAny:
		s.Decoded += growMap(&in.room, in.members, 32) + key.kept()
		return in.plan
	case shapeOpaque:
		s.Decoded += growMap(&in.room, in.members, 32) + key.kept() + in.plan.elem.size
		s.fill(in.plan.elem)
		return in.plan
	case shapeMap:
		elem, slot := in.plan.elem, in.plan.elem.size
		if slot > 128 { // a map stores larger values as pointers
			s.Decoded += slot
			slot = 8
		}
		s.Decoded += growMap(&in.room, in.members, 16+slot) + 3*key.kept() + 16
		s.fill(elem)
		return elem
	case shapeStruct:
		s.Decoded += key.unescaped()
		if p := in.plan.fields[key.plain()]; p != nil {
			return p
		}
	}
	return &s.nothing
}

// fill counts the fields of an encoded empty value of p.
func (s *jsonScale) fill(p *JSONPlan) {
	s.trees(0, p.zero.tree, p.zero.text)
}

func (s *jsonScale) value(p *JSONPlan) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	s.Values++
	if c != 'n' {
		s.Decoded += p.behind
		if p.behind > 0 {
			s.fill(p)
		}
	}
	for p.shape == shapePointer {
		if p = p.elem; c != 'n' && p.behind > 0 {
			s.Decoded += p.behind
			s.fill(p)
		}
	}
	switch c {
	case '{', '[':
		return s.enter(p, c == '[')
	case '"':
		str, err := s.quoted()
		if err != nil {
			return err
		}
		// One byte may be encoded as an escape.
		s.trees(16+str.kept(), 7*str.longer, str.encoded())
		s.Decoded += p.scalar(str)
		return nil
	}
	begun := s.at
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \n\r\t,:{}[]\""), s.text[s.at]) < 0 {
		s.at++
	}
	if s.at == begun {
		return fmt.Errorf("offset %d: %w", begun, errNotJSON)
	}
	literal := text{raw: s.text[begun:s.at], number: true}
	// A number may be encoded longer than it was.
	s.trees(16+literal.kept(), 0, int64(len(literal.raw))+24)
	s.Decoded += p.scalar(literal)
	return nil
}

func (s *jsonScale) enter(p *JSONPlan, list bool) error {
	if len(s.levels) == maxDepth {
		return fmt.Errorf("offset %d: %w", s.at, ErrTooDeep)
	}
	in := level{plan: p, list: list, started: s.at}
	if p.shape == shapeOpaque {
		in.copied = p.nests || len(s.levels) == 0 || s.levels[len(s.levels)-1].plan != p
	}
	in.copied = in.copied || p.shape == shapeRaw
	s.at++
	if p.shape == shapeRaw {
		in.plan = &s.nothing
		if p.also != nil {
			in.plan, in.later, s.typed = p.also, true, false
		}
		for in.plan.shape == shapePointer {
			s.Decoded += in.plan.behind
			in.plan = in.plan.elem
		}
	}
	s.trees(48, 0, 2) // the map, or the slice behind its interface
	switch shape := in.plan.shape; {
	case shape == shapeSkipped:
	case shape == shapeAny:
		s.Decoded += 48
	case shape == shapeMap && !list:
		s.Decoded += 48 + in.plan.elem.size // the buffer for its values
	case shape == shapeOpaque:
		s.fill(in.plan.elem)
		if s.Decoded += 48 + in.plan.elem.size; in.copied {
			s.Decoded += 512 // a decoder
		}
	case (shape == shapeList || shape == shapeBytes) && list, shape == shapeStruct && !list:
	default:
		s.Decoded += 192 // an error
		in.plan = &s.nothing
	}
	s.levels = append(s.levels, in)
	if len(s.levels) > s.Depth {
		s.Depth++
		s.Decoded += 48 // decoder state per level
		s.trees(48, 0, 0)
	}
	return nil
}

func (s *jsonScale) leave(in *level) {
	if in.copied {
		s.Decoded += int64(s.at - in.started)
	}
	if in.later {
		s.typed = true
	}
	s.levels = s.levels[:len(s.levels)-1]
}

// space skips white space and returns the position.
func (s *jsonScale) space() int {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\r' || s.text[s.at] == '\t') {
		s.at++
	}
	return s.at
}

// next returns the next byte that is not white space.
func (s *jsonScale) next() (byte, error) {
	if s.space() == len(s.text) {
		return 0, fmt.Errorf("offset %d: %w", s.at, errNotJSON)
	}
	return s.text[s.at], nil
}

func (s *jsonScale) quoted() (text, error) {
	if s.text[s.at] != '"' {
		return text{}, fmt.Errorf("offset %d: %w", s.at, errNotJSON)
	}
	out, begun := text{}, s.at+1
	for i := begun; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at, out.raw = i+1, s.text[begun:i]
			return out, nil
		case c == '\\':
			out.escapes = true
			i++
		case c >= 0x80:
			out.wide = true
			out.longer++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			out.longer++
		}
	}
	return text{}, fmt.Errorf("offset %d: %w", s.at, errNotJSON)
}

// grow returns what a slice allocates for its n-th element, and updates its
// capacity room.
func grow(room *int64, n, size int64) int64 {
	if n <= *room {
		return 0
	}
	switch {
	case *room == 0:
		*room = 1
	case *room < 256:
		*room *= 2
	default:
		*room += (*room + 3*256) / 4
	}
	return *room*size + *room*size*3/8 + 16 // the allocator rounds up
}

// growMap returns what a map with slots of that size allocates for its n-th
// member, and updates its capacity room.
func growMap(room *int64, n, slot int64) int64 {
	if n <= *room-*room/8 {
		return 0
	}
	*room = max(8, 2**room)
	if *room == 8 {
		return 8*slot + 8 + 32
	}
	return *room*(slot+1) + *room*slot/8 + 128
}
