// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// writesTime is how long writes in flight may take once the gate is shut for good.
	// After that they are cut off.
	writesTime = 5 * time.Second
	// cutOffTime is how long a transport may take to abort a write that was cut off.
	cutOffTime = time.Second
)

// writes tracks the writes in flight through a gate, and when one last ended without an
// answer, so that its outcome is unknown.
type writes struct {
	mu struct {
		sync.Mutex
		under  map[*watched]struct{}
		none   chan struct{} // closed when the last ends; nil: no waiter
		unsure time.Time     // zero: each was answered
	}
}

// begin adds w. It comes before the gate is checked, so that a gate that was shut knows
// every write that it has let pass.
func (s *writes) begin(w *watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.under == nil {
		s.mu.under = map[*watched]struct{}{}
	}
	s.mu.under[w] = struct{}{}
}

// end removes w. sure means that its outcome is known.
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

// ended returns a channel that is closed when no write is in flight.
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
	return slices.Collect(maps.Keys(s.mu.under))
}

// awaitEnd waits until no write is in flight; after limit it cuts off the rest. The gate
// is shut for good. It reports whether the outcome is known of every write that ended
// within the last window.
func (s *writes) awaitEnd(limit, window time.Duration) (sure bool) {
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

// answeredSurely reports whether the outcome of a write is known: the server has
// answered, or was never reached. A proxy's timeout leaves the outcome unknown.
func answeredSurely(resp *http.Response, err error) bool {
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "dial"
	}
	return resp.StatusCode != http.StatusBadGateway && resp.StatusCode != http.StatusGatewayTimeout
}
