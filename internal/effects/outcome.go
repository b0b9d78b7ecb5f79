// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Outcome says whether the server has carried out one attempt of a write.
type Outcome uint8

const (
	// Refused: it has not been carried out, and will not be.
	Refused Outcome = iota
	// Accepted: it has been carried out.
	Accepted
	// Unknown: it may have been carried out, or may still be.
	Unknown
)

// OutcomeOf returns the outcome of one attempt. code is the status code of the answer; 0
// means that none came, and err says why.
func OutcomeOf(code int, err error) Outcome {
	switch {
	case code == 0 && unsent(err):
		return Refused
	case code == 0, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return Unknown
	case code >= http.StatusMultipleChoices:
		return Refused
	}
	return Accepted
}

// unsent reports whether a transport that failed with err sent nothing of the request.
func unsent(err error) bool {
	if refusal, ok := errors.AsType[notSent](err); ok {
		return refusal.NotSent()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial" || op.Op == "proxyconnect"
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}

// notSent is an error of a transport that refuses requests, such as the gate of leader
// election.
type notSent interface {
	error
	// NotSent reports whether nothing of the request was sent.
	NotSent() bool
}
