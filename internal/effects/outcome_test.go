// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/flyball-dev/flyball/internal/effects"
)

type gateRefusal bool

func (gateRefusal) Error() string   { return "refused" }
func (r gateRefusal) NotSent() bool { return bool(r) }

func TestOutcomeOf_IsRefusedOnlyIfNothingCanHaveBeenCarriedOut_R14(t *testing.T) {
	failed := func(err error) error { return &url.Error{Op: "Put", URL: "http://server", Err: err} }
	for _, row := range []struct {
		name string
		code int
		err  error
		want effects.Outcome
	}{
		{"200", 200, nil, effects.Accepted},
		{"201", 201, nil, effects.Accepted},
		{"202", 202, nil, effects.Accepted},
		{"200, and the rest of the answer is lost", 200, io.ErrUnexpectedEOF, effects.Accepted},
		{"307", 307, nil, effects.Refused},
		{"400", 400, nil, effects.Refused},
		{"403", 403, nil, effects.Refused},
		{"404", 404, nil, effects.Refused},
		{"409", 409, errors.New("conflict"), effects.Refused},
		{"422", 422, nil, effects.Refused},
		{"429", 429, nil, effects.Refused},
		{"408", 408, nil, effects.Unknown},
		{"500", 500, nil, effects.Unknown},
		{"502", 502, nil, effects.Unknown},
		{"503", 503, nil, effects.Unknown},
		{"504", 504, nil, effects.Unknown},
		{"no address", 0, failed(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "server"}}), effects.Refused},
		{"no connection", 0, failed(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), effects.Refused},
		{"no connection to the proxy", 0, failed(&net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED}), effects.Refused},
		{"an unknown certificate", 0, failed(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), effects.Refused},
		{"the gate refuses", 0, failed(fmt.Errorf("write: %w", gateRefusal(true))), effects.Refused},
		{"the gate cut it off", 0, failed(gateRefusal(false)), effects.Unknown},
		{"reset", 0, failed(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), effects.Unknown},
		{"reset while it was sent", 0, failed(&net.OpError{Op: "write", Err: syscall.EPIPE}), effects.Unknown},
		{"closed", 0, failed(io.EOF), effects.Unknown},
		{"timeout", 0, failed(context.DeadlineExceeded), effects.Unknown},
		{"canceled", 0, context.Canceled, effects.Unknown},
	} {
		if got := effects.OutcomeOf(row.code, row.err); got != row.want {
			t.Errorf("%s: got %v, want %v (0 refused, 1 accepted, 2 unknown)", row.name, got, row.want)
		}
	}
}
