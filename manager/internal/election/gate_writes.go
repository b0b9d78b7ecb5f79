// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// writesTime is how long writes under way may take once the gate is shut for good.
	// After that they are cut off.
	writesTime = 5 * time.Second
	// cutOffTime is how long a transport may take to give up a write that was cut off.
	cutOffTime = time.Second
)

// writes are those that are under way through a gate, and when one last ended without
// an answer: whether such a write is carried out, and when, nobody knows.
type writes struct {
	mu struct {
		sync.Mutex
		under  map[*watched]struct{}
		none   chan struct{} // closed when the last ends; nil: nobody waits
		unsure time.Time     // zero: each was answered
	}
}

// begin has w be under way. It comes before the gate is asked, so that a gate which
// was shut before knows of each write that it has let pass.
func (s *writes) begin(w *watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.under == nil {
		s.mu.under = map[*watched]struct{}{}
	}
	s.mu.under[w] = struct{}{}
}

// end has w be under way no more. sure: it is known what became of it.
func (s *writes) end(w *watched, sure bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.under, w)
	if !sure {
		s.mu.unsure = now
	}
	if len(s.mu.under) == 0 && s.mu.none != nil {
		close(s.mu.none)
		s.mu.none = nil
	}
}

// ended is closed when nothing is under way.
func (s *writes) ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.under) > 0 {
		if s.mu.none == nil {
			s.mu.none = make(chan struct{})
		}
		return s.mu.none
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (s *writes) all() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*watched, 0, len(s.mu.under))
	for w := range s.mu.under {
		all = append(all, w)
	}
	return all
}

// settle waits until no write is under way; after limit it cuts off those that are.
// The gate is shut for good. It reports whether it is known of each that ended within
// the last window what became of it.
func (s *writes) settle(limit, window time.Duration) (sure bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.ended():
		return s.sure(window)
	case <-timer.C:
	}
	for _, w := range s.all() {
		w.cancel(errLate)
	}
	timer.Reset(cutOffTime)
	select {
	case <-s.ended():
		return s.sure(window)
	case <-timer.C:
		return false
	}
}

func (s *writes) sure(window time.Duration) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.unsure.IsZero() || now.Sub(s.mu.unsure) > window
}

// errLate is why a write is cut off at the end.
var errLate = errors.New("this process has stopped leading and is about to release the lease")

// answeredSurely reports whether it is known what became of a write: the server has
// answered, or it was never connected to. A proxy that gave up waiting for the server
// knows no more than we do.
func answeredSurely(resp *http.Response, err error) bool {
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "dial"
	}
	return resp.StatusCode != http.StatusBadGateway && resp.StatusCode != http.StatusGatewayTimeout
}
