// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// ScopeSet is an immutable set of scopes, one bit each. As the holders of an
// entry, nil is the empty set. As a filter, nil passes everything.
type ScopeSet struct {
	words []uint64 // without trailing zero words
}

// ScopesOf returns a set; never nil, so a filter over no scope is possible.
func ScopesOf(ids ...base.ScopeID) *ScopeSet {
	s := &ScopeSet{}
	for _, id := range ids {
		s.words = setBit(s.words, id)
	}
	return s
}

func setBit(words []uint64, id base.ScopeID) []uint64 {
	w := int(id / 64)
	if w >= len(words) {
		words = append(words, make([]uint64, w+1-len(words))...)
	}
	words[w] |= 1 << (id % 64)
	return words
}

func (s *ScopeSet) Empty() bool { return s == nil || len(s.words) == 0 }

func (s *ScopeSet) Has(id base.ScopeID) bool {
	if s == nil {
		return false
	}
	w := int(id / 64)
	return w < len(s.words) && s.words[w]&(1<<(id%64)) != 0
}

// With returns s plus id; s itself if it contains id.
func (s *ScopeSet) With(id base.ScopeID) *ScopeSet {
	if s.Has(id) {
		return s
	}
	if s == nil {
		return ScopesOf(id)
	}
	return &ScopeSet{words: setBit(slices.Clone(s.words), id)}
}

// without returns s minus others; nil when empty.
func (s *ScopeSet) without(others *ScopeSet) *ScopeSet {
	if !s.SeenBy(others) {
		return s
	}
	words := slices.Clone(s.words)
	for i := range min(len(words), len(others.words)) {
		words[i] &^= others.words[i]
	}
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return nil
	}
	return &ScopeSet{words: words}
}

// SeenBy reports whether a filter passes something held by s.
func (s *ScopeSet) SeenBy(filter *ScopeSet) bool {
	if s == nil {
		return false
	}
	if filter == nil {
		return true
	}
	for i := range min(len(s.words), len(filter.words)) {
		if s.words[i]&filter.words[i] != 0 {
			return true
		}
	}
	return false
}

// Equal reports whether both are the same set or filter.
func (s *ScopeSet) Equal(other *ScopeSet) bool {
	return s == other || s != nil && other != nil && slices.Equal(s.words, other.words)
}

// All yields the scopes in ascending order.
func (s *ScopeSet) All() iter.Seq[base.ScopeID] {
	return func(yield func(base.ScopeID) bool) {
		if s == nil {
			return
		}
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(base.ScopeID(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// scopeSets interns sets, so that a hundred thousand entries of one scope share
// one. Its size is the number of distinct sets ever held.
type scopeSets struct {
	single []*ScopeSet
	more   map[string]*ScopeSet
}

// alone returns the set of id.
func (t *scopeSets) alone(id base.ScopeID) *ScopeSet {
	if int(id) < len(t.single) && t.single[id] != nil {
		return t.single[id]
	}
	return t.intern(ScopesOf(id))
}

func (t *scopeSets) intern(s *ScopeSet) *ScopeSet {
	if s.Empty() {
		return nil
	}
	if id, ok := s.only(); ok {
		for int(id) >= len(t.single) {
			t.single = append(t.single, nil)
		}
		if t.single[id] == nil {
			t.single[id] = s
		}
		return t.single[id]
	}
	key := make([]byte, 0, 64)
	for _, w := range s.words {
		for range 8 {
			key = append(key, byte(w))
			w >>= 8
		}
	}
	if known, ok := t.more[string(key)]; ok {
		return known
	}
	if t.more == nil {
		t.more = make(map[string]*ScopeSet)
	}
	t.more[string(key)] = s
	return s
}

// only returns the scope of a set of one.
func (s *ScopeSet) only() (base.ScopeID, bool) {
	last := s.words[len(s.words)-1]
	if last&(last-1) != 0 {
		return 0, false
	}
	for _, w := range s.words[:len(s.words)-1] {
		if w != 0 {
			return 0, false
		}
	}
	return base.ScopeID((len(s.words)-1)*64 + bits.TrailingZeros64(last)), true
}
