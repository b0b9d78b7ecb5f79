// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/flyball-dev/flyball/kube"
)

// Request is an admission request. It is valid during one call of one function, which
// must not keep it, and is not safe for concurrent use.
type Request struct {
	// AdmissionRequest as sent by the server. Object and OldObject are raw; the
	// function receives them decoded.
	admissionv1.AdmissionRequest

	warnings    []string
	annotations map[string]string
}

// IsDryRun reports whether the request will not be stored, so that the function must
// have no side effects. The server sends such requests only to webhooks whose
// sideEffects are None or NoneOnDryRun.
func (r *Request) IsDryRun() bool { return r.DryRun != nil && *r.DryRun }

// Key returns the key of the object. The name is empty if the server will generate it.
func (r *Request) Key() kube.Key { return kube.Key{Namespace: r.Namespace, Name: r.Name} }

// Warn adds a warning for the user, whether the request is admitted or not. The server
// truncates it after 256 characters.
func (r *Request) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds an annotation to the server's audit log; the server prefixes key with the
// webhook's name.
func (r *Request) Audit(key, value string) {
	if r.annotations == nil {
		r.annotations = map[string]string{}
	}
	r.annotations[key] = value
}

// hook answers the body of one kind of review within the decoding budget. It returns
// the answer and the outcome, and an *httpError if there is no answer.
type hook func(ctx context.Context, body []byte, room *decoding) (answer []byte, end outcome, err error)

// outcome is the result of a request, for the counters.
type outcome int

const (
	passed outcome = iota // admitted, or converted
	denied
	failed
	outcomes
)
