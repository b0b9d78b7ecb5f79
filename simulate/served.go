// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/deque"
)

// Served is a request that was answered, or is being answered.
type Served struct {
	At   time.Time
	Verb string // list, watch, get, create, update, patch, delete; else the method
	Path string
	// Query as it was sent.
	Query string
	// Status of the answer; 0 while there is none.
	Status int
}

// servedAtMost is how many requests are remembered.
const servedAtMost = 100_000

// served remembers requests. Its lock is a leaf.
type served struct {
	mu struct {
		sync.Mutex
		requests deque.Deque[Served]
	}
}

func (s *served) all() []Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Served, 0, s.mu.requests.Len())
	for n := s.mu.requests.Front(); n < s.mu.requests.Back(); n++ {
		out = append(out, *s.mu.requests.At(n))
	}
	return out
}

// record adds a request. The recorder, which numbers it among all requests, notes the status
// of its answer.
func (s *served) record(w http.ResponseWriter, request Served) *recorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.requests.Len() == servedAtMost {
		s.mu.requests.Pop()
	}
	return &recorder{ResponseWriter: w, in: s, number: s.mu.requests.Push(request)}
}

func (s *served) answered(number uint64, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number >= s.mu.requests.Front() {
		s.mu.requests.At(number).Status = code
	}
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	in     *served
	number uint64
	code   int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.in.answered(r.number, code)
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets an http.ResponseController flush.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
