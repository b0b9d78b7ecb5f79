// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package keypair holds a server's certificate and key, and replaces both while the server runs.
// An Authority makes certificates for local servers and their users.
package keypair

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Pair is a certificate and its key. It is immutable.
type Pair struct {
	// Certificate and Key as PEM.
	Certificate, Key []byte
	// TLS is for handshakes.
	TLS tls.Certificate
	// Leaf is the first certificate.
	Leaf *x509.Certificate
}

// Parse returns a complete pair; an incomplete one is an error.
func Parse(certificate, key []byte) (*Pair, error) {
	served, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	// The key pair was parsed, so its leaf can be.
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		return nil, err
	}
	served.Leaf = leaf
	return &Pair{Certificate: certificate, Key: key, TLS: served, Leaf: leaf}, nil
}

func (p *Pair) same(other *Pair) bool {
	return p != nil && other != nil && bytes.Equal(p.Certificate, other.Certificate) && bytes.Equal(p.Key, other.Key)
}

// ValidAt returns why p, which may be nil, is invalid at a time, or nil.
func (p *Pair) ValidAt(now time.Time) error {
	switch {
	case p == nil:
		return errors.New("there is no certificate")
	case now.Before(p.Leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", p.Leaf.NotBefore.Format(time.RFC3339))
	case now.After(p.Leaf.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", p.Leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// Due reports whether less than a third of p's lifetime is left.
func (p *Pair) Due(now time.Time) bool {
	life := p.Leaf.NotAfter.Sub(p.Leaf.NotBefore)
	return p.Leaf.NotAfter.Sub(now) < life/3
}

// Replaces reports whether found should be served instead of have: a valid pair
// always, an invalid one only instead of another invalid one. Both may be nil.
func Replaces(have, found *Pair, now time.Time) bool {
	if found == nil || found.same(have) {
		return false
	}
	return found.ValidAt(now) == nil || have.ValidAt(now) != nil
}
