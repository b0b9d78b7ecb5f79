// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"github.com/flyball-dev/flyball/simulate/internal/advice"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/podsecurity"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// admitting is a write of q as admission sees it.
func (q *writing) admitting(operation string, obj, old *object.Object) *webhooks.Call {
	return &webhooks.Call{
		Kind: q.kind, Namespace: q.namespace, Name: q.name, Subresource: q.subresource, User: q.user, URL: q.URL,
		Operation: operation, Object: obj, Old: old, DryRun: q.dryRun, Deleting: q.deleting, Warn: q.warn,
	}
}

// mutated is obj as mutating admission leaves it.
func (s *Server) mutated(q *writing, operation string, obj, old *object.Object) (*object.Object, error) {
	call := q.admitting(operation, obj, old)
	if err := s.admission.Mutate(q.Context(), call); err != nil {
		return nil, err
	}
	return call.Object, nil
}

// validated asks validating admission.
func (s *Server) validated(q *writing, operation string, obj, old *object.Object) error {
	return s.admission.Validate(q.Context(), q.admitting(operation, obj, old))
}

// secured applies Pod Security admission. old is nil for a create.
func (s *Server) secured(q *writing, old, obj *object.Object) error {
	return podsecurity.Check(storedObjects{s}, podsecurity.Write{Kind: q.kind, Subresource: q.subresource, Old: old, Object: obj, Warn: q.warn})
}

// advise warns the client of what is valid but unwise. old is nil for a create.
func (q *writing) advise(old, obj *object.Object) {
	if q.subresource != "" {
		return
	}
	for _, text := range advice.Of(q.kind, old, obj) {
		q.warn(text)
	}
}
