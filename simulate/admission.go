// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// admission decides about writes after they are decoded and before they are
// stored. It is called without the server's lock, and more than once for a
// write that has to be tried again. The server without one admits all.
type admission interface {
	// mutate may replace call.object by one that is pruned and has its defaults.
	mutate(ctx context.Context, call *admissionCall) error
	Validate(ctx context.Context, call *admissionCall) error
}

// admissionCall is one write that is to be admitted. Objects are in the
// version of the request.
type admissionCall struct {
	*call
	operation string         // CREATE, UPDATE, DELETE, CONNECT
	object    *object.Object // nil for DELETE
	old       *object.Object // nil for CREATE
	dryRun    bool
	deleting  *metav1.DeleteOptions // of a DELETE
	// warn adds a warning to the answer.
	warn func(text string)
}

// mutated is obj as mutating admission leaves it.
func (s *Server) mutated(q *writing, operation string, obj, old *object.Object) (*object.Object, error) {
	if s.admission == nil {
		return obj, nil
	}
	call := &admissionCall{call: q.call, operation: operation, object: obj, old: old, dryRun: q.dryRun, deleting: q.deleting, warn: q.warn}
	if err := s.admission.mutate(q.Context(), call); err != nil {
		return nil, err
	}
	return call.object, nil
}

// validated asks validating admission.
func (s *Server) validated(q *writing, operation string, obj, old *object.Object) error {
	if s.admission == nil {
		return nil
	}
	return s.admission.Validate(q.Context(), &admissionCall{call: q.call, operation: operation, object: obj, old: old, dryRun: q.dryRun, deleting: q.deleting, warn: q.warn})
}
