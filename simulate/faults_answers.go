// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// losses are the answers that are to be lost, in the order they were asked for.
// Server.mu guards them.
type losses struct {
	next int // writes of any kind
	list []loss
}

// loss is one answer.
type loss struct {
	of []schema.GroupKind
	// to is the number of the request that is waited for; below 0: any of the kinds.
	to int
}

// LoseResponse breaks the connection instead of answering, after the next so
// many writes have been stored. What Direct asks for is always answered.
func (s *Server) LoseResponse(times int) {
	s.fault(func(f *faults) { f.losses.next = times })
}

// LoseResponseOf is LoseResponse for the next write of one of these kinds.
func (s *Server) LoseResponseOf(kinds ...schema.GroupKind) {
	s.fault(func(f *faults) { f.losses.list = append(f.losses.list, loss{kinds, -1}) })
}

// LoseResponseTo is LoseResponse for r, a write that a Tracer is told of before it is
// carried out. If it is not, or comes by Direct, it is the next write of its kind that
// is stored.
func (s *Server) LoseResponseTo(r Request) {
	s.fault(func(f *faults) { f.losses.list = append(f.losses.list, loss{[]schema.GroupKind{r.Kind}, r.Number}) })
}

// losesResponse reports whether the answer to r is lost, and takes it from what is
// to be.
func (s *Server) losesResponse(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.mu.faults.losses
	i := slices.IndexFunc(l.list, func(one loss) bool {
		return one.to == r.Number || one.to < 0 && slices.Contains(one.of, r.Kind)
	})
	switch {
	case i >= 0:
		l.list = slices.Delete(l.list, i, i+1)
	case l.next > 0:
		l.next--
	default:
		return false
	}
	return true
}

// missed has whoever waited for the answer to a request that is over wait for the next
// of its kind.
func (s *Server) missed(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.faults.losses.list {
		if one := &s.mu.faults.losses.list[i]; one.to == number {
			one.to = -1
		}
	}
}

// accepts reports whether AcceptTokens lets a token in. gated: it was called.
func (s *Server) accepts(token string) (accepted, gated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.faults.tokens[token], s.mu.faults.tokens != nil
}
