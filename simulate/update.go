// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/deletion"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/strategy"
)

// update stores the object of a PUT.
func (s *Server) update(q *writing) (*object.Object, bool, error) {
	given, err := q.decode()
	if err != nil {
		return nil, false, err
	}
	return s.change(q, q.kind.CreatesOnUpdate() && q.subresource == "", func(old *object.Object) (*object.Object, error) {
		obj := given
		if given = nil; obj == nil { // another write was faster
			if obj, err = q.decode(); err != nil {
				return nil, err
			}
		}
		if old == nil {
			return obj, nil
		}
		if uid := obj.Meta().GetUID(); uid != "" && uid != old.Meta().GetUID() {
			return nil, errOtherUID(q.kind, q.key(), uid, old.Meta().GetUID())
		}
		return obj, q.own(old, obj)
	})
}

// change takes an object through the hops of a write that starts from what is
// stored. next makes the new object of the old one, which is nil when there is
// none and creates allows one. It is asked again when another write was faster.
func (s *Server) change(q *writing, creates bool, next func(old *object.Object) (*object.Object, error)) (*object.Object, bool, error) {
	for q.Context().Err() == nil {
		held, old, err := s.current(q)
		if err != nil {
			return nil, false, err
		}
		if held == nil {
			if !creates {
				return nil, false, apierrors.NewNotFound(q.kind.GroupResource(), q.name)
			}
			obj, err := next(nil)
			if err != nil {
				return nil, false, err
			}
			obj, err = s.createInstead(q, obj)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return obj, true, err
		}
		obj, err := next(old)
		if err != nil {
			return nil, false, err
		}
		if obj, err = s.finish(q, old, obj); err != nil {
			return nil, false, err
		}
		stored, done, err := s.commitChange(q, held, old, obj)
		if done || err != nil {
			return stored, false, err
		}
	}
	return nil, false, apierrors.NewTimeoutError("the request was given up", 0)
}

// createInstead stores the object of a PUT or an apply that finds nothing.
func (s *Server) createInstead(q *writing, obj *object.Object) (*object.Object, error) {
	m := obj.Meta()
	switch {
	case m.GetUID() != "":
		return nil, apierrors.NewConflict(q.kind.GroupResource(), q.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", m.GetUID()))
	case m.GetResourceVersion() != "" && !q.applies():
		return nil, apierrors.NewNotFound(q.kind.GroupResource(), q.name)
	}
	m.SetResourceVersion("")
	return s.createOnce(q, obj)
}

// current is the object of q's path as it is held, and in q's version.
func (s *Server) current(q *writing) (held, old *object.Object, err error) {
	s.mu.Lock()
	held = s.mu.log.Get(q.kind.Held(), q.key())
	seen := s.seenLocked(q.call, held)
	s.mu.Unlock()
	if held == nil {
		return nil, nil, nil
	}
	if old, err = q.kind.FromStorage(seen); err != nil {
		return held, nil, kinds.ErrUnreadable(q.kind, held, err)
	}
	return held, old, nil
}

// finish takes an object through the hops between its making and its storing.
func (s *Server) finish(q *writing, old, obj *object.Object) (*object.Object, error) {
	if err := q.check(obj); err != nil {
		return nil, err
	}
	if err := s.access.Escalates(q.user, q.kind, old, obj); err != nil {
		return nil, err
	}
	obj, err := s.mutated(q, "UPDATE", obj, old)
	if err != nil {
		return nil, err
	}
	if err := q.checkVersion(old, obj); err != nil {
		return nil, err
	}
	strategy.PrepareUpdate(q.kind, q.subresource, old, obj)
	if err := s.fillUpdate(q, old, obj); err != nil {
		return nil, err
	}
	if object.Same(old, obj) {
		obj = old // webhooks are asked all the same
	} else if errs := strategy.ValidateUpdate(q.kind, q.subresource, old, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(strategy.InvalidKind(q.kind), q.name, errs)
	}
	q.advise(old, obj)
	if err := s.secured(q, old, obj); err != nil {
		return nil, err
	}
	return obj, s.validated(q, "UPDATE", obj, old)
}

// checkVersion is optimistic locking.
func (q *writing) checkVersion(old, obj *object.Object) error {
	was, m := old.Meta(), obj.Meta()
	version := m.GetResourceVersion()
	if _, err := strconv.ParseUint(version, 10, 64); version != "" && err != nil {
		return refusal.Plain(err)
	}
	switch {
	case (version == "" || version == "0") && q.kind.NeedsVersion():
		return apierrors.NewInvalid(schema.GroupKind{Group: q.kind.Group, Kind: q.kind.Resource}, q.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	case version != "" && version != "0" && version != was.GetResourceVersion():
		return refusal.Conflict(q.kind.GroupResource(), q.name)
	}
	return nil
}

// commitChange stores obj in place of held, if that is still what is stored.
func (s *Server) commitChange(q *writing, held, old, obj *object.Object) (answer *object.Object, done bool, err error) {
	if obj == old {
		return old, true, nil // not even a new version
	}
	stored, err := q.kind.ToStorage(obj)
	if err != nil {
		return nil, false, err
	}
	if err := storable(stored); err != nil && !q.dryRun {
		return nil, false, err
	}
	if err := q.kind.Define(stored); err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	if answer, err = q.kind.FromStorage(stored); err != nil {
		return nil, false, err
	}
	r := q.kind.Held()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.log.Get(r, q.key()) != held {
		return nil, false, nil
	}
	if q.dryRun {
		return obj, true, nil
	}
	if deletion.Completes(old, obj) {
		// The answer to a write that takes the last finalizer has the old version.
		s.takeLocked(r, q.key())
		return obj, true, nil
	}
	return answered(answer, stored, s.putLocked(r, stored)), true, nil
}

// errOtherUID is said of an update of an object that is another one by now.
func errOtherUID(k *kinds.Kind, key types.NamespacedName, want, got types.UID) *apierrors.StatusError {
	where := k.Resource
	if !k.Builtin {
		where = k.Group + "/" + k.Resource
	}
	return apierrors.NewConflict(k.GroupResource(), key.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s", where, revisions.PathOf(key), want, got))
}
