// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Serving configures the metrics server. The zero value serves plain HTTP to everyone
// who can reach the address.
type Serving struct {
	// Secure serves the metrics over TLS.
	Secure bool
	// CertDir is a directory with tls.crt and tls.key, such as a mounted Secret of type
	// kubernetes.io/tls. They are reread while the server runs; the last valid pair is
	// served. Empty: a self-signed certificate in memory, so that scrapers must skip
	// verification. Requires Secure.
	CertDir string
	// Guard answers only requests with a bearer token whose user is authorized, as the
	// API server decides by TokenReview and SubjectAccessReview of the path and the
	// method in lower case: a ClusterRole with nonResourceURLs ["/metrics"] and verbs
	// ["get"] allows scraping. The program itself needs the ClusterRole
	// system:auth-delegator. Answers are cached, so a revoked permission takes effect
	// within five minutes. Requires Secure, unless the address is loopback.
	Guard bool
	// Profiling serves profiles under /debug/pprof/, which expose the memory of the
	// process. Requires Guard, unless the address is loopback.
	Profiling bool
	// Console serves pages below /debug/flyball/ that show what the program does, with its keys,
	// errors and cached objects: pass console.Handler of package manager/console. Requires Guard,
	// unless the address is loopback; the same as JSON is served then in any case, see
	// docs/console.md. Nil: there are no pages.
	Console func(inspect.Program) http.Handler
	// Actions lets people act on the program below the same path: run a key now, drop its backoff, pause
	// and resume keys and controllers, and take a profile of the heap or the goroutines, by POST requests and on
	// the pages of Console. Each is logged and recorded as an Event. With Guard the verb is post. A pause
	// needs leader election: it is kept in the Lease. See docs/console.md. Requires Guard, unless the
	// address is loopback.
	Actions bool
	// TLS may change the TLS configuration, such as the ciphers or the least version,
	// or require client certificates. It is called once, when the server starts.
	// Requires Secure. Nil: TLS 1.2 or newer.
	TLS func(*tls.Config)
}

// misuse returns an error if s is invalid for an address.
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
	for _, open := range []struct {
		on         bool
		name, does string
	}{
		{s.Profiling, "Profiling", "see the memory of the process"},
		{s.Console != nil, "Console", "see keys, errors and objects"},
		{s.Actions, "Actions", "pause controllers"},
	} {
		if open.on && !s.Guard && !isLoopback(address) {
			wrong = append(wrong, fmt.Errorf("MetricsServing.%s lets every client that reaches %q %s; "+
				"set MetricsServing.Guard (-metrics-guard), or a MetricsAddress of loopback such as %q", open.name, address, open.does, defaultMetricsAddress))
		}
	}
	return errors.Join(wrong...)
}

// isLoopback reports whether only this machine, or this Pod, can reach the address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
