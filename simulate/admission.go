// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// mutated is obj as mutating admission leaves it, with its defaults.
func (s *Server) mutated(q *writing, operation string, obj, old *object) (*object, error) {
	if s.admission == nil {
		return obj, nil
	}
	call := &admissionCall{call: q.call, operation: operation, object: obj, old: old, dryRun: q.dryRun, warn: q.warn}
	if err := s.admission.mutate(q.Context(), call); err != nil {
		return nil, err
	}
	if call.object != nil && q.kind.schema != nil {
		if _, err := q.kind.schema.prune(call.object.fields); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		q.kind.schema.setDefaults(call.object.fields)
	}
	return call.object, nil
}

// validated asks validating admission.
func (s *Server) validated(q *writing, operation string, obj, old *object) error {
	if s.admission == nil {
		return nil
	}
	return s.admission.validate(q.Context(), &admissionCall{call: q.call, operation: operation, object: obj, old: old, dryRun: q.dryRun, warn: q.warn})
}
