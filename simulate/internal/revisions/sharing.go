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

// sharedAtMost bounds the remembered parts of objects, for each of the two generations.
const sharedAtMost = 1 << 15

// sharing deduplicates equal parts of stored objects: Pods of one template have the same
// probes, tolerations and owned fields, and a map takes 300 bytes however little it holds.
// This is safe because stored objects do not change.
//
// Parts are found by hash. Inner parts are shared first, so two maps are equal when their
// values are identical. Parts that have not occurred for a while are dropped: when the
// young generation is full, it becomes the old one, and the old one is dropped.
type sharing struct {
	seed       maphash.Seed
	young, old map[uint64]any
}

func newSharing() *sharing { return &sharing{seed: maphash.MakeSeed(), young: map[uint64]any{}} }

// share replaces parts of an object's fields and metadata, which must not be shared with
// other goroutines yet.
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

// value returns the shared value that equals value.
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

// one returns the remembered map or list that equals value; if there is none, it remembers
// value.
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

// hash hashes a map or list by its scalar values and by the addresses of its maps and
// lists.
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

// identical reports whether a and b are equal scalars, or the same map or list in memory.
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
