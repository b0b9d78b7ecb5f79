// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// Serving says how the metrics are served. The zero value serves plain HTTP to
// everybody who reaches the address.
type Serving struct {
	// Secure has them served over TLS.
	Secure bool
	// CertDir has tls.crt and tls.key, as a mounted Secret of type kubernetes.io/tls
	// has them. They are read again while the server runs, and what is there and whole
	// is served. Empty: a certificate made in memory, which nobody trusts, so that who
	// scrapes must skip its verification. Needs Secure.
	CertDir string
	// Guard answers only requests with a bearer token whose user may make them, as the
	// API server says by TokenReview and SubjectAccessReview of the path and of the
	// method in lower case: a ClusterRole with nonResourceURLs ["/metrics"] and verbs
	// ["get"] lets scrape. The program itself needs the ClusterRole
	// system:auth-delegator. Answers are remembered for minutes, so a right that is
	// taken away ends within five. Needs Secure, unless the address is loopback.
	Guard bool
	// Profiling serves profiles under /debug/pprof/, which show what is in the memory
	// of the process. Needs Guard, unless the address is loopback.
	Profiling bool
	// TLS may change how is served, such as the ciphers or the least version, or ask
	// for a certificate of who scrapes. It is called once, when the server starts. Needs
	// Secure. Nil: TLS 1.2 or newer.
	TLS func(*tls.Config)
}

// misuse says what is wrong with s on an address.
func (s Serving) misuse(address string) error {
	if address == off {
		return nil
	}
	var wrong []error
	if s.TLS != nil && !s.Secure {
		wrong = append(wrong, errors.New("MetricsServing.TLS is set, but metrics are served without TLS; set MetricsServing.Secure (-metrics-secure)"))
	}
	if s.CertDir != "" && !s.Secure {
		wrong = append(wrong, fmt.Errorf("MetricsServing.CertDir is %q, but metrics are served without TLS; set MetricsServing.Secure (-metrics-secure)", s.CertDir))
	}
	if s.Guard && !s.Secure && !isLoopback(address) {
		wrong = append(wrong, fmt.Errorf("MetricsServing.Guard takes tokens, and %q is served without TLS, so that others could read them; "+
			"set MetricsServing.Secure (-metrics-secure), or a MetricsAddress of loopback such as %q", address, defaultMetricsAddress))
	}
	if s.Profiling && !s.Guard && !isLoopback(address) {
		wrong = append(wrong, fmt.Errorf("MetricsServing.Profiling shows the memory of the process to everybody who reaches %q; "+
			"set MetricsServing.Guard (-metrics-guard), or a MetricsAddress of loopback such as %q", address, defaultMetricsAddress))
	}
	return errors.Join(wrong...)
}

// isLoopback reports whether only this machine, or this pod, reaches the address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
