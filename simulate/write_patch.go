// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// patch stores what a PATCH makes of the object.
func (s *Server) patch(q *writing) (*object.Object, bool, error) {
	if q.applies() {
		return s.apply(q)
	}
	patch, err := q.readPatch()
	if err != nil {
		return nil, false, err
	}
	return s.change(q, false, func(old *object.Object) (*object.Object, error) {
		obj, err := q.patched(patch, old)
		if err != nil {
			return nil, err
		}
		return obj, q.own(old, obj)
	})
}

// readPatch reads the body of a patch. It is read once, however often it is
// tried.
func (q *writing) readPatch() (decode.Patch, error) {
	p, problems, err := decode.ReadPatch(q.media, q.body)
	if err != nil {
		return p, err
	}
	if err := q.report(problems); err != nil {
		return p, decode.InvalidPatch(q.body, err)
	}
	return p, nil
}

// patched is the object that a patch makes of old.
func (q *writing) patched(p decode.Patch, old *object.Object) (*object.Object, error) {
	obj, problems, text, err := p.On(q.kind, old)
	if err != nil {
		return nil, err
	}
	if err := q.report(problems); err != nil {
		return nil, decode.InvalidPatch(text, err)
	}
	return obj, q.check(obj)
}
