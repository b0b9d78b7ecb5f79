// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
)

// admission decides about writes after they are decoded and before they are
// stored. It is called without the server's lock, and more than once for a
// write that has to be tried again. The server without one admits all.
type admission interface {
	// mutate may change call.object.
	mutate(ctx context.Context, call *admissionCall) error
	validate(ctx context.Context, call *admissionCall) error
}

// admissionCall is one write that is to be admitted. Objects are in the
// version of the request.
type admissionCall struct {
	*call
	operation string  // CREATE, UPDATE, DELETE, CONNECT
	object    *object // nil for DELETE
	old       *object // nil for CREATE
	dryRun    bool
	// warn adds a warning to the answer.
	warn func(text string)
}

func (s *Server) mutating(call *admissionCall) error {
	if s.admission == nil {
		return nil
	}
	return s.admission.mutate(call.Context(), call)
}

func (s *Server) validating(call *admissionCall) error {
	if s.admission == nil {
		return nil
	}
	return s.admission.validate(call.Context(), call)
}
