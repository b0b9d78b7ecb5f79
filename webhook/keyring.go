// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
)

// keyring is what the replicas share: who is trusted, who signs, what is served.
//
//	            ┌── announce ──▶ next is trusted, and signs nothing yet
//	signer old ─┤                  │ when everybody has been told
//	            └── promote ◀──────┘ next becomes the signer, and signs what is served
//	old signer: trusted until it expires, its key is gone
type keyring struct {
	trusted []*x509.Certificate // authorities, the newest first
	signer  *keypair.Pair       // nil: none, or none that is of use
	next    *keypair.Pair       // the signer to be; nil: none
	serving *keypair.Pair
}

// The parts of the Secret. tls.crt, tls.key and ca.crt are where other programs look.
const (
	partTrusted    = "ca.crt"
	partSigner     = "signer.crt"
	partSignerKey  = "signer.key"
	partNext       = "next.crt"
	partNextKey    = "next.key"
	partServing    = "tls.crt"
	partServingKey = "tls.key"
)

// readKeyring reads the data of a Secret. What cannot be read is not there.
func readKeyring(data map[string][]byte) keyring {
	read := func(certificate, key string) *keypair.Pair {
		found, err := keypair.Parse(data[certificate], data[key])
		if err != nil {
			return nil
		}
		return found
	}
	return keyring{
		trusted: parseCertificates(data[partTrusted]),
		signer:  read(partSigner, partSignerKey),
		next:    read(partNext, partNextKey),
		serving: read(partServing, partServingKey),
	}
}

// write puts the keyring into the data of a Secret, where other keys stay.
func (k keyring) write(data map[string][]byte) {
	put := func(p *keypair.Pair, certificate, key string) {
		delete(data, certificate)
		delete(data, key)
		if p != nil {
			data[certificate], data[key] = p.Certificate, p.Key
		}
	}
	put(k.signer, partSigner, partSignerKey)
	put(k.next, partNext, partNextKey)
	put(k.serving, partServing, partServingKey)
	data[partTrusted] = k.bundle()
}

// bundle is what clients are to trust, as PEM.
func (k keyring) bundle() []byte {
	var b bytes.Buffer
	for _, authority := range k.trusted {
		b.Write(pemOf("CERTIFICATE", authority.Raw))
	}
	return b.Bytes()
}

func parseCertificates(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return out
		}
		if found, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, found)
		}
		text = rest
	}
}

// step is what is to be done to a keyring.
type step string

const (
	stepKeep     step = "keep"
	stepCreate   step = "create"   // an authority and what it signs, at once: nothing works
	stepIssue    step = "issue"    // a certificate, by the authority that there is
	stepAnnounce step = "announce" // the next authority
	stepPromote  step = "promote"  // the next authority signs
	stepForget   step = "forget"   // authorities that have expired
)

// policy is what a keyring is to be like.
type policy struct {
	names                       []string
	lifetime, authorityLifetime time.Duration
}

const (
	// settling is how long after a change of what is to be trusted every API server
	// is taken to know of it.
	settling = 30 * time.Second
	// leastLife that an authority must have left to sign anything.
	leastLife = time.Minute
	// backdating is for clients whose clock is behind.
	backdating = time.Hour
)

// step is what is to be done to k at a time, when everybody has been known to trust
// what it trusts for so long; below 0: not everybody.
func (k keyring) step(now time.Time, known time.Duration, p policy) step {
	signs, follows := k.signs(k.signer, now), k.signs(k.next, now)
	if !k.works(now, p) {
		switch {
		case signs:
			return stepIssue
		case follows:
			return stepPromote
		}
		return stepCreate
	}
	switch {
	case follows && known >= settling:
		return stepPromote
	case !follows && (!signs || k.signer.Due(now)):
		return stepAnnounce
	case signs && k.serving.Due(now) && k.serving.Leaf.NotAfter.Before(k.signer.Leaf.NotAfter):
		return stepIssue
	case slices.ContainsFunc(k.trusted, func(c *x509.Certificate) bool { return now.After(c.NotAfter) }):
		return stepForget
	}
	return stepKeep
}

// works reports whether what is served is good for all names, and trusted.
func (k keyring) works(now time.Time, p policy) bool {
	return k.serving.ValidAt(now) == nil && covers(k.serving.Leaf, p.names) && k.trusts(k.serving.Leaf, now)
}

// trusts reports whether who trusts the bundle trusts leaf.
func (k keyring) trusts(leaf *x509.Certificate, now time.Time) bool {
	roots := x509.NewCertPool()
	for _, authority := range k.trusted {
		roots.AddCert(authority)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

// signs reports whether an authority can sign: it is trusted and lives long enough.
func (k keyring) signs(authority *keypair.Pair, now time.Time) bool {
	return authority != nil && authority.Leaf.IsCA && authority.ValidAt(now) == nil &&
		authority.Leaf.NotAfter.Sub(now) >= leastLife && slices.ContainsFunc(k.trusted, authority.Leaf.Equal)
}

func covers(leaf *x509.Certificate, names []string) bool {
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

// namesOf are those that leaf is good for.
func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// split tells DNS names from addresses.
func split(names []string) (hosts []string, addresses []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	return hosts, addresses
}

// pemOf is one block of PEM.
func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
