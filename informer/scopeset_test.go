// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"maps"
	"slices"
	"testing"
)

func FuzzScopeSet(f *testing.F) {
	f.Add([]byte{1, 200, 129, 73, 201, 64, 128})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s *scopeSet
		var sets scopeSets
		model := map[ScopeID]bool{}
		for _, op := range ops {
			id := ScopeID(op>>1) * 3
			before := s
			if op&1 == 0 {
				s, model[id] = s.with(id), true
			} else {
				s = s.without(id)
				delete(model, id)
			}
			if s != before && slices.Equal(slices.Collect(before.all()), slices.Collect(s.all())) {
				t.Fatalf("a set that did not change became another")
			}
			s = sets.intern(s)
			if got, want := slices.Collect(s.all()), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if again := sets.intern(scopesOf(slices.Collect(s.all())...)); again != s {
				t.Fatalf("the set %v is kept twice", slices.Collect(s.all()))
			}
			if s.seenBy(nil) != (len(model) > 0) || s.seenBy(scopesOf(id)) != model[id] || s.has(id) != model[id] || s.empty() != (len(model) == 0) {
				t.Fatalf("%v is seen by all: %v, by %d: %v", slices.Collect(s.all()), s.seenBy(nil), id, s.seenBy(scopesOf(id)))
			}
		}
	})
}
