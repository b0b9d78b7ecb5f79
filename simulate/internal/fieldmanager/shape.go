// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"maps"
	"reflect"
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// Symbols of a shape for a field.
const (
	shapeGone    = '-' // it is removed; of an apply: it is not mentioned
	shapeNew     = '+'
	shapeSame    = '='
	shapeChanged = '~'
)

// shaping writes a shape. Its methods return false for input that a field manager may
// interpret in another way, or refuse.
type shaping struct {
	schema *smd.Schema
	to     []byte
}

// word appends a text unambiguously.
func (s *shaping) word(text string) { s.to = append(append(s.to, text...), 0) }

// typeOf returns the type of a field in a map of type at.
func typeOf(m *smd.Map, name string) smd.TypeRef {
	if f, ok := m.FindField(name); ok {
		return f.Type
	}
	return m.ElementType
}

// fields appends the fields of two maps, except some.
func (s *shaping) fields(old, is map[string]any, m *smd.Map, but ...string) bool {
	var few [wire.FewFields]string
	names := few[:0]
	for name := range is {
		names = append(names, name)
	}
	for name := range old {
		if _, both := is[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	s.to = append(s.to, '{')
	for _, name := range names {
		if slices.Contains(but, name) {
			continue
		}
		s.word(name)
		before, had := old[name]
		after, has := is[name]
		ok := true
		switch at := typeOf(m, name); {
		case !has:
			s.to = append(s.to, shapeGone)
			ok = s.one(before, at)
		case !had:
			s.to = append(s.to, shapeNew)
			ok = s.one(after, at)
		default:
			ok = s.pair(before, after, at)
		}
		if !ok {
			return false
		}
	}
	s.to = append(s.to, '}')
	return true
}

// pair appends two values of the same field.
func (s *shaping) pair(old, is any, at smd.TypeRef) bool {
	switch v := is.(type) {
	case map[string]any:
		was, ok := old.(map[string]any)
		atom, known := s.schema.Resolve(at)
		return ok && known && atom.Map != nil && v != nil && was != nil && s.fields(was, v, atom.Map)
	case []any:
		was, ok := old.([]any)
		atom, known := s.schema.Resolve(at)
		return ok && known && atom.List != nil && s.lists(was, v, atom.List)
	case nil:
		s.to = append(s.to, 'n')
		return old == nil
	}
	if reflect.TypeOf(old) != reflect.TypeOf(is) || !s.one(is, at) {
		return false
	}
	s.relate(old == is)
	return true
}

func (s *shaping) relate(equal bool) {
	if equal {
		s.to = append(s.to, shapeSame)
	} else {
		s.to = append(s.to, shapeChanged)
	}
}

// one appends a value that only one of the two has.
func (s *shaping) one(v any, at smd.TypeRef) bool {
	if v == nil {
		s.to = append(s.to, 'n')
		return true
	}
	atom, ok := s.schema.Resolve(at)
	if !ok {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return atom.Map != nil && v != nil && s.fields(nil, v, atom.Map)
	case []any:
		return atom.List != nil && s.lists(nil, v, atom.List)
	}
	return atom.Scalar != nil && s.kind(v)
}

// kind appends the type of a scalar.
func (s *shaping) kind(v any) bool {
	switch v.(type) {
	case string:
		s.to = append(s.to, 's')
	case bool:
		s.to = append(s.to, 'b')
	case int64:
		s.to = append(s.to, 'i')
	case float64:
		s.to = append(s.to, 'f')
	default:
		return false
	}
	return true
}

// lists appends two lists. The first is nil if there is only one.
func (s *shaping) lists(old, is []any, l *smd.List) bool {
	if l.ElementRelationship != smd.Associative {
		s.to = append(s.to, 'a')
		if old != nil {
			s.relate(jsontree.Equal(old, is))
		}
		return s.look(old) && s.look(is)
	}
	if len(l.Keys) == 0 {
		var err error
		if s.to, err = wire.AppendList(append(s.to, 'l'), old); err == nil {
			s.to, err = wire.AppendList(s.to, is)
		}
		return err == nil
	}
	before, ok := s.itemKeys(old, l)
	if !ok {
		return false
	}
	after, ok := s.itemKeys(is, l)
	if !ok {
		return false
	}
	s.to = append(s.to, 'k')
	for i, key := range after {
		s.word(key)
		if at := slices.Index(before, key); at >= 0 {
			s.to = append(s.to, shapeSame)
			ok = s.pair(old[at], is[i], l.ElementType)
		} else {
			s.to = append(s.to, shapeNew)
			ok = s.one(is[i], l.ElementType)
		}
		if !ok {
			return false
		}
	}
	s.to = append(s.to, ']')
	for i, key := range before {
		s.word(key)
		if !slices.Contains(after, key) && !s.one(old[i], l.ElementType) {
			return false
		}
	}
	s.to = append(s.to, ']')
	return true
}

// look appends the fields of a value and their types, without values.
func (s *shaping) look(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		s.to = append(s.to, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s.word(name)
			if !s.look(v[name]) {
				return false
			}
		}
		s.to = append(s.to, '}')
		return v != nil
	case []any:
		s.to = append(s.to, '[')
		last := len(s.to)
		for _, item := range v {
			begin := len(s.to)
			if !s.look(item) {
				return false
			}
			if begin > last && string(s.to[last:begin]) == string(s.to[begin:]) {
				s.to = s.to[:begin] // another of the same type
			} else {
				last = begin
			}
		}
		s.to = append(s.to, ']')
		return true
	case nil:
		s.to = append(s.to, 'n')
		return true
	}
	return s.kind(v)
}

// itemKeys returns the keys that identify the items of a list. ok is false if two items
// have the same key or an item has none.
func (s *shaping) itemKeys(list []any, l *smd.List) (keys []string, ok bool) {
	var atom smd.Atom
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		var key []byte
		for _, name := range l.Keys {
			value, has := fields[name]
			if !has {
				if atom.Map == nil {
					if atom, ok = s.schema.Resolve(l.ElementType); !ok || atom.Map == nil {
						return nil, false
					}
				}
				if f, ok := atom.Map.FindField(name); ok {
					value = f.Default
				}
			}
			switch v := value.(type) {
			case nil:
				if has {
					return nil, false
				}
				key = append(key, '-')
			case string, int64, bool:
				key, _ = wire.AppendJSON(key, v)
			default:
				return nil, false
			}
		}
		if slices.Contains(keys, string(key)) {
			return nil, false
		}
		keys = append(keys, string(key))
	}
	return keys, true
}
