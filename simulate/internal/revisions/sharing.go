// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"hash/maphash"
	"maps"
	"math"
	"reflect"
	"slices"
)

// sharedAtMost is how many parts of objects are remembered, twice over.
const sharedAtMost = 1 << 15

// sharing makes equal parts of stored objects one piece of memory: Pods of one template have the same probes, tolerations and
// owned fields, and a map takes 300 bytes however little it holds. Stored objects do not change, so nobody can tell.
//
// Parts are remembered by a hash. The inner ones are shared first, so two maps are equal when their values are identical. What
// was not met for a while is forgotten: when the young are many, they become the old, and the old go.
type sharing struct {
	seed       maphash.Seed
	young, old map[uint64]any
}

func newSharing() *sharing { return &sharing{seed: maphash.MakeSeed(), young: map[uint64]any{}} }

// share replaces what is in the fields of an object and in its metadata, which nobody else has yet.
func (s *sharing) share(fields map[string]any) {
	for name, value := range fields {
		if metadata, ok := value.(map[string]any); ok && name == "metadata" {
			for name, value := range metadata {
				metadata[name] = s.value(value)
			}
			continue
		}
		fields[name] = s.value(value)
	}
}

// value is the shared one that equals value.
func (s *sharing) value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := v
		for name, item := range v {
			if is := s.value(item); !identical(is, item) {
				if identical(out, v) {
					out = maps.Clone(v)
				}
				out[name] = is
			}
		}
		return s.one(out)
	case []any:
		out := v
		for i, item := range v {
			if is := s.value(item); !identical(is, item) {
				if identical(out, v) {
					out = slices.Clone(v)
				}
				out[i] = is
			}
		}
		return s.one(out)
	}
	return value
}

// one is the map or list that is remembered and equals value; value from now on if there is none.
func (s *sharing) one(value any) any {
	h := s.hash(value)
	known, ok := s.young[h]
	if !ok {
		if known, ok = s.old[h]; ok {
			s.young[h] = known
		}
	}
	if ok && equalParts(known, value) {
		return known
	}
	if len(s.young) >= sharedAtMost {
		s.young, s.old = map[uint64]any{}, s.young
	}
	s.young[h] = value
	return value
}

// hash of a map or list, from its items' values and the addresses of what they hold.
func (s *sharing) hash(value any) (h uint64) {
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			h += Mix(maphash.String(s.seed, name) ^ s.ofItem(item))
		}
		h += uint64(len(v))
	case []any:
		for _, item := range v {
			h = Mix(h ^ s.ofItem(item))
		}
		h = ^h
	}
	return Mix(h)
}

func (s *sharing) ofItem(item any) uint64 {
	switch v := item.(type) {
	case string:
		return maphash.String(s.seed, v) + 1
	case int64:
		return Mix(uint64(v) + 2)
	case float64:
		return Mix(math.Float64bits(v) + 3)
	case bool:
		if v {
			return 4
		}
		return 5
	case map[string]any, []any:
		return Mix(uint64(reflect.ValueOf(v).Pointer()) + 6)
	}
	return 7
}

// Mix spreads the bits of x.
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>29
}

// equalParts reports whether two maps or lists have identical items.
func equalParts(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for name, item := range a {
			if other, ok := b[name]; !ok || !identical(item, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && slices.EqualFunc(a, b, identical)
	}
	return false
}

// identical reports whether a and b are equal and, of maps and lists, the same piece of memory.
func identical(a, b any) bool {
	switch v := a.(type) {
	case map[string]any:
		w, ok := b.(map[string]any)
		return ok && reflect.ValueOf(v).Pointer() == reflect.ValueOf(w).Pointer()
	case []any:
		w, ok := b.([]any)
		return ok && len(v) == len(w) && reflect.ValueOf(v).Pointer() == reflect.ValueOf(w).Pointer()
	case float64:
		w, ok := b.(float64)
		return ok && math.Float64bits(v) == math.Float64bits(w)
	case nil, string, bool, int64:
		return a == b
	}
	return false
}
