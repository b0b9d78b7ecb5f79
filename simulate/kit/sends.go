// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"slices"
	"sync"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/simulate"
)

// sends are the requests of a process that reconciles have sent and that have not arrived
// yet. The server does not learn which reconcile sends a request.
type sends struct {
	mu struct {
		sync.Mutex
		open []*send
	}
}

type send struct {
	request, run string
	shard        *int // of run; nil: none
}

// add records a request; nil: no reconcile sends it.
func (s *sends) add(server *simulate.Server, r *http.Request) *send {
	run := runText(r.Context())
	if run == "" {
		return nil
	}
	asked := server.Reads(r)
	one := &send{request: asked.Verb + " " + pathText(asked), run: run}
	if shard, ok := contextvalues.ShardOf(r.Context(), nil); ok {
		one.shard = &shard.Number
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open = append(s.mu.open, one)
	return one
}

func (s *sends) drop(one *send) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open = slices.DeleteFunc(s.mu.open, func(other *send) bool { return other == one })
}

// take returns the reconcile that has sent the request, the first one if several sent the
// same, and its shard; empty: none.
func (s *sends) take(r simulate.Request) (run string, shard *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := r.Verb + " " + pathText(r)
	i := slices.IndexFunc(s.mu.open, func(one *send) bool { return one.request == text })
	if i < 0 {
		return "", nil
	}
	one := s.mu.open[i]
	s.mu.open = slices.Delete(s.mu.open, i, i+1)
	return one.run, one.shard
}

// run returns the reconcile that has sent a request, and its shard; empty: none.
func (p *programs) run(r simulate.Request) (run string, shard *int) {
	for _, life := range p.lives() {
		if life.name == r.Client {
			return life.sends.take(r)
		}
	}
	return "", nil
}
