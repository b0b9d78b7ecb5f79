// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/flyball-dev/flyball/informer"
)

// Request is a request that is to be admitted. It is for one call of one function,
// which may keep it no longer, and for one goroutine.
type Request struct {
	// AdmissionRequest as the server has sent it. Object and OldObject are raw; the
	// function is given them decoded.
	admissionv1.AdmissionRequest

	warnings    []string
	annotations map[string]string
}

// IsDryRun reports whether nothing of the request will be stored, so that the
// function must not change anything anywhere either. The server sends such a
// request only to webhooks whose sideEffects are None or NoneOnDryRun.
func (r *Request) IsDryRun() bool { return r.DryRun != nil && *r.DryRun }

// Key of the object. Its name is empty when the server is to generate it.
func (r *Request) Key() informer.Key { return informer.Key{Namespace: r.Namespace, Name: r.Name} }

// Warn shows the user a warning, whether the request is admitted or not. The server
// cuts what is longer than 256 characters.
func (r *Request) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds to the server's audit log; the webhook's name is put before key.
func (r *Request) Audit(key, value string) {
	if r.annotations == nil {
		r.annotations = map[string]string{}
	}
	r.annotations[key] = value
}

// hook answers the body of one kind of review, in the room that there is to decode it.
// It returns the answer, how the request ended, and an *httpError when there is no
// answer.
type hook func(ctx context.Context, body []byte, room *decoding) (answer []byte, end outcome, err error)

// outcome is how a request ended, as it is counted.
type outcome int

const (
	passed outcome = iota // admitted, or converted
	denied
	failed
	outcomes
)
