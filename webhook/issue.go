// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
)

// take does one step and returns the new keyring. It does not modify k.
func (k keyring) take(s step, now time.Time, p policy) (keyring, error) {
	var err error
	switch s {
	case stepCreate:
		if k.signer, err = newAuthority(now, p); err != nil {
			return k, err
		}
		k.next = nil
		k = k.trust(k.signer)
		return k.issue(now, p)
	case stepAnnounce:
		if k.next, err = newAuthority(now, p); err != nil {
			return k, err
		}
		return k.trust(k.next), nil
	case stepPromote:
		k.signer, k.next = k.next, nil
		return k.issue(now, p)
	case stepIssue:
		return k.issue(now, p)
	case stepForget:
		k.trusted = slices.DeleteFunc(slices.Clone(k.trusted), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	}
	return k, nil
}

func (k keyring) trust(authority *keypair.Pair) keyring {
	k.trusted = append([]*x509.Certificate{authority.Leaf}, k.trusted...)
	return k
}

// maxNames bounds the sum of the names of replicas of several versions.
const maxNames = 32

// issue signs a new certificate. It also has the names of the previous one, because
// replicas ask for different names during a rollout.
func (k keyring) issue(now time.Time, p policy) (keyring, error) {
	names := slices.Clone(p.names)
	if k.serving != nil {
		for _, name := range namesOf(k.serving.Leaf) {
			if !slices.Contains(names, name) && len(names) < maxNames {
				names = append(names, name)
			}
		}
	}
	end := now.Add(p.lifetime)
	if authority := k.signer.Leaf.NotAfter; end.After(authority) {
		end = authority
	}
	hosts, addresses := split(names)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: p.names[0]},
		DNSNames:    hosts,
		IPAddresses: addresses,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotAfter:    end,
	}
	var err error
	k.serving, err = sign(template, now, k.signer)
	return k, err
}

func newAuthority(now time.Time, p policy) (*keypair.Pair, error) {
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: p.names[0] + " webhook authority " + now.UTC().Format(time.RFC3339)},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		NotAfter:              now.Add(p.authorityLifetime),
	}, now, nil)
}

// sign creates a key and a certificate signed by the given pair; nil: self-signed.
func sign(template *x509.Certificate, now time.Time, by *keypair.Pair) (*keypair.Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	// Backdate a short lifetime only a little, because its last third counts from
	// NotBefore.
	template.NotBefore = now.Add(-min(backdating, template.NotAfter.Sub(now)/10))
	parent, signer := template, crypto.PrivateKey(key)
	if by != nil {
		parent, signer = by.Leaf, by.TLS.PrivateKey
		if template.NotBefore.Before(parent.NotBefore) {
			template.NotBefore = parent.NotBefore
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return keypair.Parse(pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", encoded))
}
