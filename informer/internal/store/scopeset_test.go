// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

func FuzzScopeSet(f *testing.F) {
	f.Add([]byte{1, 200, 129, 73, 201, 64, 128})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s *ScopeSet
		var sets scopeSets
		model := map[base.ScopeID]bool{}
		for _, op := range ops {
			id := base.ScopeID(op>>1) * 3
			before := s
			if op&1 == 0 {
				s, model[id] = s.With(id), true
			} else {
				s = s.without(ScopesOf(id))
				delete(model, id)
			}
			if s != before && slices.Equal(slices.Collect(before.All()), slices.Collect(s.All())) {
				t.Fatalf("a set that did not change became another")
			}
			s = sets.intern(s)
			if got, want := slices.Collect(s.All()), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if again := sets.intern(ScopesOf(slices.Collect(s.All())...)); again != s {
				t.Fatalf("the set %v is kept twice", slices.Collect(s.All()))
			}
			if s.SeenBy(nil) != (len(model) > 0) || s.SeenBy(ScopesOf(id)) != model[id] || s.Has(id) != model[id] || s.Empty() != (len(model) == 0) {
				t.Fatalf("%v is seen by all: %v, by %d: %v", slices.Collect(s.All()), s.SeenBy(nil), id, s.SeenBy(ScopesOf(id)))
			}
		}
	})
}
