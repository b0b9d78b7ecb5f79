// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// callers describes the clients that are allowed.
type callers struct {
	authorities *x509.CertPool // nil: all clients
	names       []string       // empty: all with a certificate of the authorities
}

// ask makes TLS verify client certificates if there are any: requests for conversions
// come without.
func (c callers) ask(config *tls.Config) {
	if c.authorities != nil {
		config.ClientCAs, config.ClientAuth = c.authorities, tls.VerifyClientCertIfGiven
	}
}

// check returns an error if the client may not send admission reviews.
func (c callers) check(purpose Purpose, state *tls.ConnectionState) error {
	if c.authorities == nil || purpose == PurposeConvert {
		return nil
	}
	cause := errors.New("the client presented no certificate signed by one of webhook.Options.ClientCAs")
	if state != nil && len(state.VerifiedChains) > 0 {
		leaf := state.VerifiedChains[0][0]
		if len(c.names) == 0 || slices.Contains(c.names, leaf.Subject.CommonName) ||
			slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return slices.Contains(c.names, name) }) {
			return nil
		}
		cause = fmt.Errorf("the client's certificate is for %q, which is not among webhook.Options.ClientNames", leaf.Subject.CommonName)
	}
	return &httpError{code: http.StatusUnauthorized, reason: metav1.StatusReasonUnauthorized, cause: cause}
}
