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

// keyring is the shared state of the replicas: trusted authorities, signer, and serving
// certificate.
//
//	            ┌── announce ──▶ next is trusted, and signs nothing yet
//	signer old ─┤                  │ when every target trusts it
//	            └── promote ◀──────┘ next becomes the signer, and signs what is served
//	old signer: trusted until it expires, its key is gone
type keyring struct {
	trusted []*x509.Certificate // authorities, the newest first
	signer  *keypair.Pair       // nil: none, or none that is usable
	next    *keypair.Pair       // the next signer; nil: none
	serving *keypair.Pair
}

// The keys of the Secret. tls.crt, tls.key and ca.crt are where other programs look.
const (
	partTrusted    = "ca.crt"
	partSigner     = "signer.crt"
	partSignerKey  = "signer.key"
	partNext       = "next.crt"
	partNextKey    = "next.key"
	partServing    = "tls.crt"
	partServingKey = "tls.key"
)

// readKeyring reads the data of a Secret. Unreadable entries count as missing.
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

// write stores the keyring in the data of a Secret and keeps its other keys.
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

type step string

const (
	stepKeep     step = "keep"
	stepCreate   step = "create"   // an authority and a certificate, at once: nothing works
	stepIssue    step = "issue"    // a certificate, by the existing authority
	stepAnnounce step = "announce" // the next authority
	stepPromote  step = "promote"  // the next authority becomes the signer
	stepForget   step = "forget"   // authorities that have expired
)

type policy struct {
	names                       []string
	lifetime, authorityLifetime time.Duration
}

const (
	// settling is the time after which every API server is assumed to use a changed
	// bundle.
	settling = 30 * time.Second
	// leastLife is the remaining lifetime that an authority needs to sign.
	leastLife = time.Minute
	// backdating allows for clients whose clock is behind.
	backdating = time.Hour
)

// step returns the next step for k. known is how long all targets have trusted the
// authorities of k; negative: not all do.
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

// works reports whether the serving certificate covers all names and is trusted.
func (k keyring) works(now time.Time, p policy) bool {
	return k.serving.ValidAt(now) == nil && covers(k.serving.Leaf, p.names) && k.trusts(k.serving.Leaf, now)
}

// trusts reports whether a client with the bundle trusts leaf.
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
	return !slices.ContainsFunc(names, func(name string) bool { return leaf.VerifyHostname(name) != nil })
}

func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

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

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
