// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync/atomic"
	"unsafe"
)

const (
	// window is how many lookups are counted before a Site is judged. It is
	// larger than the number of different values that many objects have in turn.
	window = 4096
	// windowOfSamples is the same while few values are looked up.
	windowOfSamples = 256
	// worth: with at least one repeated value in so many, each is looked up.
	worth = 16
	// few and fewer: one value in so many is looked up.
	few, fewer = 16, 64
)

// Site is what bytes mean: a field of a Go type in an encoding, with a
// selection. The same bytes at the same Site become equal values. The zero value
// is ready for use. A Site is not copied.
type Site struct {
	every    atomic.Uint32 // one value in so many is looked up; 0: each
	turn     atomic.Uint32
	looked   atomic.Uint32
	repeated atomic.Uint32
}

// Due reports whether the next value is to be looked up, with LookDue: ask where
// it takes time to find out the bytes of a value. Ask once for each value.
func (s *Site) Due() bool {
	every := s.every.Load()
	return every == 0 || s.turn.Add(1)%every == 0
}

// count records a lookup.
func (s *Site) count(repeated bool) {
	if repeated {
		s.repeated.Add(1)
	}
	every, enough := s.every.Load(), uint32(window)
	if every != 0 {
		enough = windowOfSamples
	}
	if looked := s.looked.Add(1); looked < enough || !s.looked.CompareAndSwap(looked, 0) {
		return // one of those that pass the end judges
	}
	hits := s.repeated.Swap(0)
	switch {
	case hits >= enough/worth:
		s.every.Store(0)
	case every == 0:
		s.every.Store(few)
	default:
		s.every.Store(fewer)
	}
}

// mix returns the hash for bytes at s.
func (s *Site) mix(hash uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return hash ^ uint64(uintptr(unsafe.Pointer(s)))*odd
}
