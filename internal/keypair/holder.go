// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package keypair

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Holder has the pair that is served. The zero value has none. Safe for
// concurrent use.
type Holder struct {
	mu struct {
		sync.Mutex
		pair    *Pair
		problem error // why there is no newer one; nil: there is none to be had
	}
}

// Offer has found served if it is better than what is. It reports whether it is.
func (h *Holder) Offer(found *Pair, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !Replaces(h.mu.pair, found, now) {
		h.mu.problem = found.ValidAt(now)
		return false
	}
	h.mu.pair, h.mu.problem = found, found.ValidAt(now)
	return true
}

// Miss notes why there is no newer pair. It reports whether that is news.
func (h *Holder) Miss(problem error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.mu.problem == nil || h.mu.problem.Error() != problem.Error()
	h.mu.problem = problem
	return news
}

// Get returns the pair that is served, nil: none, and why there is no newer one.
func (h *Holder) Get() (*Pair, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.pair, h.mu.problem
}

// Check says why nobody can be served at a time; nil: they can.
func (h *Holder) Check(now time.Time) error {
	p, problem := h.Get()
	if err := p.ValidAt(now); err != nil {
		return errors.Join(err, problem)
	}
	return nil
}

// Serve is what a handshake asks.
func (h *Holder) Serve(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p, problem := h.Get()
	if p == nil {
		return nil, fmt.Errorf("there is no certificate yet: %w", problem)
	}
	return &p.TLS, nil
}
