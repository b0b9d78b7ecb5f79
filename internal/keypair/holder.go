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

// Offer has found served if it is better than what is. It reports whether it is, and
// what is wrong with found, if that is news.
func (h *Holder) Offer(found *Pair, now time.Time) (served bool, news error) {
	problem := found.ValidAt(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if served = Replaces(h.mu.pair, found, now); served {
		h.mu.pair = found
	}
	if !sameText(problem, h.mu.problem) {
		news = problem
	}
	h.mu.problem = problem
	return served, news
}

// Miss notes why there is no newer pair. It reports whether that is news.
func (h *Holder) Miss(problem error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := !sameText(problem, h.mu.problem)
	h.mu.problem = problem
	return news
}

// sameText reports whether people would take one error for the other.
func sameText(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
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
	err := p.ValidAt(now)
	if err != nil && !sameText(err, problem) {
		return errors.Join(err, problem)
	}
	return err
}

// Serve is what a handshake asks.
func (h *Holder) Serve(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p, problem := h.Get()
	if p == nil {
		return nil, fmt.Errorf("no certificate yet: %w", problem)
	}
	return &p.TLS, nil
}
