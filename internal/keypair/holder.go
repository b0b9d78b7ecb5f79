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

// Holder has the pair being served. The zero value has none. Safe for
// concurrent use.
type Holder struct {
	mu struct {
		sync.Mutex
		pair    *Pair
		problem error // why there is no newer one, if anything
	}
}

// Offer serves found if it is better than the present pair. It reports whether
// it is, and what is wrong with found if that has changed.
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

// Miss records why there is no newer pair, and reports whether the reason is
// new.
func (h *Holder) Miss(problem error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := !sameText(problem, h.mu.problem)
	h.mu.problem = problem
	return news
}

// Meanwhile says what is served while there is no newer pair, for a log.
func (h *Holder) Meanwhile() string {
	if p, _ := h.Get(); p == nil {
		return "there is none yet, so TLS handshakes fail until there is"
	}
	return "still serving the previous one"
}

func sameText(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

// Get returns the pair being served, or nil, and why there is no newer one.
func (h *Holder) Get() (*Pair, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.pair, h.mu.problem
}

// Check returns why no valid certificate can be served at a time, or nil.
func (h *Holder) Check(now time.Time) error {
	p, problem := h.Get()
	err := p.ValidAt(now)
	if err != nil && !sameText(err, problem) {
		return errors.Join(err, problem)
	}
	return err
}

// Serve is a tls.Config.GetCertificate function.
func (h *Holder) Serve(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p, problem := h.Get()
	if p == nil {
		return nil, fmt.Errorf("no certificate yet: %w", problem)
	}
	return &p.TLS, nil
}
