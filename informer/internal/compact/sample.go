// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"math/rand/v2"
	"sync"
)

const (
	// renewAfter is by how much the number of packed objects grows until the
	// dictionary is renewed, so that there are few dictionaries: a list comes
	// in the order of the names, and its start is not like the rest.
	renewAfter = 8
	// partsAtLeast is how many objects a dictionary has parts of.
	partsAtLeast = 4
	// samplesAtMost are kept.
	samplesAtMost = 512
)

// sample is a sample of the encoded objects packed so far, of twice the size of
// a dictionary.
type sample struct {
	limit int // size of a dictionary
	mu    struct {
		sync.Mutex
		parts  [][]byte
		bytes  int
		seen   uint64
		next   uint64 // number of objects at which a dictionary is made; 0: when there is enough for one
		chance *rand.Rand
	}
}

// learn adds an object to the sample, and makes a dictionary when it is time.
func (p *Packer) learn(raw []byte) {
	if dictionary := p.sample.add(raw); dictionary != nil {
		_ = p.renew(dictionary) // without it, entries are larger
	}
}

// add returns a dictionary if it is time for one.
func (s *sample) add(raw []byte) (dictionary []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.chance == nil {
		s.mu.chance = rand.New(rand.NewPCG(1, 2)) // the same sample for the same objects
	}
	s.mu.seen++
	s.takeLocked(raw[:min(len(raw), s.limit/partsAtLeast)])
	if s.mu.bytes < s.limit || s.mu.seen < s.mu.next {
		return nil
	}
	s.mu.next = s.mu.seen * renewAfter
	dictionary = make([]byte, 0, s.limit)
	for _, i := range s.mu.chance.Perm(len(s.mu.parts)) {
		part := s.mu.parts[i]
		dictionary = append(dictionary, part[:min(len(part), s.limit-len(dictionary))]...)
	}
	return dictionary
}

// takeLocked gives each object the same chance to be in the sample.
func (s *sample) takeLocked(part []byte) {
	if s.mu.bytes < 2*s.limit && len(s.mu.parts) < samplesAtMost {
		s.mu.parts = append(s.mu.parts, bytes.Clone(part))
		s.mu.bytes += len(part)
		return
	}
	at := s.mu.chance.Uint64N(s.mu.seen)
	if at >= uint64(len(s.mu.parts)) {
		return
	}
	s.mu.bytes += len(part) - len(s.mu.parts[at])
	s.mu.parts[at] = bytes.Clone(part)
}
