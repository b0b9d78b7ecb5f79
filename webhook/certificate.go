// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pair is a certificate and its key.
type pair struct {
	certificate, key []byte // PEM
	served           tls.Certificate
	leaf             *x509.Certificate
}

// parsePair reads a whole pair: a half written one is an error.
func parsePair(certificate, key []byte) (*pair, error) {
	served, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	// The key pair has been read, so its leaf can be.
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		return nil, err
	}
	served.Leaf = leaf
	return &pair{certificate: certificate, key: key, served: served, leaf: leaf}, nil
}

func (p *pair) same(other *pair) bool {
	return p != nil && other != nil && bytes.Equal(p.certificate, other.certificate) && bytes.Equal(p.key, other.key)
}

// validAt says why p is of no use at a time; nil: it is.
func (p *pair) validAt(now time.Time) error {
	switch {
	case p == nil:
		return errors.New("there is no certificate")
	case now.Before(p.leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", p.leaf.NotBefore.Format(time.RFC3339))
	case now.After(p.leaf.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", p.leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// due reports whether less than a third of what p lives is left.
func (p *pair) due(now time.Time) bool {
	life := p.leaf.NotAfter.Sub(p.leaf.NotBefore)
	return p.leaf.NotAfter.Sub(now) < life/3
}

// replaces reports whether found is to be served where have was: a pair that is
// valid always is, one that is not only in place of another such.
func replaces(have, found *pair, now time.Time) bool {
	if found == nil || found.same(have) {
		return false
	}
	return found.validAt(now) == nil || have.validAt(now) != nil
}

// holder has the pair that is served.
type holder struct {
	mu struct {
		sync.Mutex
		pair    *pair
		problem error // why there is no newer one; nil: there is none to be had
	}
}

// offer has found served if it is better than what is. It reports whether it is.
func (h *holder) offer(found *pair, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !replaces(h.mu.pair, found, now) {
		h.mu.problem = found.validAt(now)
		return false
	}
	h.mu.pair, h.mu.problem = found, found.validAt(now)
	return true
}

// miss notes why there is no newer pair. It reports whether that is news.
func (h *holder) miss(problem error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.mu.problem == nil || h.mu.problem.Error() != problem.Error()
	h.mu.problem = problem
	return news
}

func (h *holder) get() (*pair, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.pair, h.mu.problem
}

// check says why nobody can be served at a time; nil: they can.
func (h *holder) check(now time.Time) error {
	p, problem := h.get()
	if err := p.validAt(now); err != nil {
		return errors.Join(err, problem)
	}
	return nil
}

// serve is what a handshake asks.
func (h *holder) serve(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p, problem := h.get()
	if p == nil {
		return nil, fmt.Errorf("there is no certificate yet: %w", problem)
	}
	return &p.served, nil
}

// pemOf is one block of PEM.
func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
