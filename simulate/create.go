// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/strategy"
)

// nameAttempts is how often a generated name is drawn anew when it is taken.
const nameAttempts = 8

// create stores the object of a POST.
func (s *Server) create(q *writing) (*object.Object, error) {
	obj, err := q.decode()
	if err != nil {
		return nil, err
	}
	return s.createObject(q, obj)
}

// createObject takes a decoded object through the hops of a create.
func (s *Server) createObject(q *writing, obj *object.Object) (stored *object.Object, err error) {
	if obj.Meta().GetName() != "" {
		return s.createOnce(q, obj)
	}
	for range nameAttempts {
		if stored, err = s.createOnce(q, obj.Copy()); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return stored, err
}

func (s *Server) createOnce(q *writing, obj *object.Object) (*object.Object, error) {
	unbegun(obj)
	if err := s.access.Escalates(q.user, q.kind, nil, obj); err != nil {
		return nil, err
	}
	if !q.applies() { // which has said who owns what
		if err := q.own(nil, obj); err != nil {
			return nil, err
		}
	}
	if err := s.housed(q, obj.Meta().GetName()); err != nil {
		return nil, err
	}
	obj, err := s.mutated(q, "CREATE", obj, nil)
	if err != nil {
		return nil, err
	}
	s.beginCreate(obj)
	strategy.PrepareCreate(q.kind, obj)
	if err := s.fill(q, obj); err != nil {
		return nil, err
	}
	if errs := strategy.ValidateCreate(q.kind, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(strategy.InvalidKind(q.kind), obj.Meta().GetName(), errs)
	}
	q.advise(nil, obj)
	if err := s.secured(q, nil, obj); err != nil {
		return nil, err
	}
	if err := s.validated(q, "CREATE", obj, nil); err != nil {
		return nil, err
	}
	// The store looks at this, and a rehearsal does not come so far.
	if version := obj.Meta().GetResourceVersion(); version != "" && version != "0" && !q.dryRun {
		return nil, refusal.Plain(errors.New("resourceVersion should not be set on objects to be created"))
	}
	return s.commitCreate(q, obj)
}

// unbegun takes from a new object what only the server decides about.
func unbegun(o *object.Object) {
	m := o.Meta()
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetUID("")
}

// beginCreate gives a new object what the server decides about.
func (s *Server) beginCreate(obj *object.Object) {
	m := obj.Meta()
	m.SetCreationTimestamp(jsonvalue.Now())
	m.SetUID(s.allotter.UID())
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(s.allotter.Name(m.GetGenerateName()))
	}
}

// commitCreate stores a new object, unless the request is a rehearsal.
func (s *Server) commitCreate(q *writing, obj *object.Object) (*object.Object, error) {
	stored, err := q.kind.ToStorage(obj)
	if err != nil {
		return nil, err
	}
	if err := storable(stored); err != nil && !q.dryRun {
		return nil, err
	}
	if err := q.kind.Define(stored); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	answer, err := q.kind.FromStorage(stored) // what is stored may have lost something
	if err != nil {
		return nil, err
	}
	if answer != stored {
		answer.Shape = q.kind.Schema // no default takes the place of what was lost
	}
	r := q.kind.GroupResource()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch terminating, served := s.kinds.Terminating(r); {
	case !served:
		return nil, refusal.Absent()
	case terminating:
		return nil, apierrors.NewForbidden(r, stored.Meta().GetName(), errors.New("create not allowed while custom resource definition is terminating"))
	}
	if there := s.mu.log.Get(q.kind.Held(), stored.Key()); there != nil {
		err := apierrors.NewAlreadyExists(r, stored.Meta().GetName())
		if !object.Unset(there.Meta().GetDeletionTimestamp()) {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if q.dryRun {
		return obj, nil
	}
	return answered(answer, stored, s.putLocked(q.kind.Held(), stored)), nil
}

// answered is the answer to a write now that it is kept: at its version, and the
// very object when it is of the version that is stored.
func answered(answer, stored, kept *object.Object) *object.Object {
	if answer == stored {
		return kept
	}
	return answer.At(kept.Revision())
}
