// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// update stores the object of the body in place of the one that is stored.
func (p *Path) update(ctx context.Context, q *Request) (*object.Object, bool, error) {
	given, err := q.decode()
	if err != nil {
		return nil, false, err
	}
	return p.Change(ctx, q, q.Kind.CreatesOnUpdate() && q.Subresource == "", func(old *object.Object) (*object.Object, error) {
		obj := given
		if given = nil; obj == nil { // another write came in between
			if obj, err = q.decode(); err != nil {
				return nil, err
			}
		}
		if old == nil {
			return obj, nil
		}
		if uid := obj.Meta().GetUID(); uid != "" && uid != old.Meta().GetUID() {
			return nil, errUID(q, uid, old.Meta().GetUID())
		}
		return obj, q.Own(old, obj)
	})
}

// Change carries out a write that starts from the stored object. next returns the new object
// for the old one, which is nil if there is none and creates allows that. It is called again
// when another write came in between.
func (p *Path) Change(ctx context.Context, q *Request, creates bool, next func(old *object.Object) (*object.Object, error)) (*object.Object, bool, error) {
	for ctx.Err() == nil {
		held, old, err := p.current(q)
		if err != nil {
			return nil, false, err
		}
		if held == nil {
			if !creates {
				return nil, false, apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
			}
			obj, err := next(nil)
			if err != nil {
				return nil, false, err
			}
			obj, err = p.createInstead(ctx, q, obj)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return obj, true, err
		}
		obj, err := next(old)
		if err != nil {
			return nil, false, err
		}
		if obj, err = p.finish(ctx, q, old, obj); err != nil {
			return nil, false, err
		}
		stored, done, err := p.commitChange(q, held, old, obj)
		if done || err != nil {
			return stored, false, err
		}
	}
	return nil, false, apierrors.NewTimeoutError("the request was given up", 0)
}

// createInstead stores the object of an update or an apply if there is none yet.
func (p *Path) createInstead(ctx context.Context, q *Request, obj *object.Object) (*object.Object, error) {
	m := obj.Meta()
	switch {
	case m.GetUID() != "":
		return nil, apierrors.NewConflict(q.Kind.GroupResource(), q.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", m.GetUID()))
	case m.GetResourceVersion() != "" && !q.applies():
		return nil, apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
	}
	m.SetResourceVersion("")
	return p.createOnce(ctx, q, obj)
}

// held returns the object that q addresses as it is held, and as q sees it.
func (p *Path) held(q *Request) (held, seen *object.Object) {
	if !q.Sound {
		held = p.Store.Get(q.Kind.Held(), q.key())
		return held, held
	}
	tx := p.Store.Begin()
	defer tx.End()
	if held = tx.Get(q.Kind.Held(), q.key()); held == nil {
		return nil, nil
	}
	return held, p.Seen(q.Kind, held)
}

// current returns the object that q addresses as it is held, and in q's version.
func (p *Path) current(q *Request) (held, old *object.Object, err error) {
	held, seen := p.held(q)
	if held == nil {
		return nil, nil, nil
	}
	if old, err = q.Kind.FromStorage(seen); err != nil {
		return held, nil, kinds.ErrUnreadable(q.Kind, held, err)
	}
	return held, old, nil
}

// finish carries out the steps between the managed fields and the commit of an update.
func (p *Path) finish(ctx context.Context, q *Request, old, obj *object.Object) (*object.Object, error) {
	if err := q.check(obj); err != nil {
		return nil, err
	}
	if err := p.Rights.Escalates(q.User, q.Kind, old, obj); err != nil {
		return nil, err
	}
	obj, err := p.mutate(ctx, q, "UPDATE", obj, old)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(q.Kind, q.Name, old, obj); err != nil {
		return nil, err
	}
	PrepareUpdate(q.Kind, q.Subresource, old, obj)
	if err := p.fillUpdate(q, old, obj); err != nil {
		return nil, err
	}
	if object.Same(old, obj) {
		obj = old // webhooks are called all the same
	} else if errs := ValidateUpdate(q.Kind, q.Subresource, old, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(InvalidKind(q.Kind), q.Name, errs)
	}
	return obj, p.validate(ctx, q, "UPDATE", obj, old)
}

// checkVersion refuses an update of another version than the stored one.
func checkVersion(kind *kinds.Kind, name string, old, obj *object.Object) error {
	was, m := old.Meta(), obj.Meta()
	version := m.GetResourceVersion()
	if _, err := strconv.ParseUint(version, 10, 64); version != "" && err != nil {
		return refusal.Plain(err)
	}
	switch {
	case (version == "" || version == "0") && kind.NeedsVersion():
		return apierrors.NewInvalid(schema.GroupKind{Group: kind.Group, Kind: kind.Resource}, name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	case version != "" && version != "0" && version != was.GetResourceVersion():
		return refusal.Conflict(kind.GroupResource(), name)
	}
	return nil
}

// commitChange stores obj in place of held, if that is still what is stored.
func (p *Path) commitChange(q *Request, held, old, obj *object.Object) (answer *object.Object, done bool, err error) {
	if obj == old {
		return old, true, nil // not even a new version
	}
	stored, err := q.Kind.ToStorage(obj)
	if err != nil {
		return nil, false, err
	}
	if err := checkSize(stored); err != nil && !q.DryRun {
		return nil, false, err
	}
	if err := q.Kind.Define(stored); err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	if answer, err = q.Kind.FromStorage(stored); err != nil {
		return nil, false, err
	}
	r := q.Kind.Held()
	tx := p.Store.Begin()
	defer tx.End()
	if tx.Get(r, q.key()) != held {
		return nil, false, nil
	}
	if q.DryRun {
		return obj, true, nil
	}
	if Completes(old, obj) {
		// The answer to a write that removes the last finalizer has the old version.
		tx.Remove(r, q.key())
		return obj, true, nil
	}
	return atRevision(answer, stored, tx.Put(r, stored)), true, nil
}

// errUID returns the error for an update of an object that has another UID.
func errUID(q *Request, want, got types.UID) error {
	return errPrecondition(q, "UID", string(want), string(got))
}

// errPrecondition returns the error for an update of an object of which a field is not as
// required.
func errPrecondition(q *Request, field, want, got string) error {
	where, key := q.Kind.Resource, q.key()
	if !q.Kind.Builtin {
		where = q.Kind.Group + "/" + q.Kind.Resource
	}
	return apierrors.NewConflict(q.Kind.GroupResource(), key.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: %[3]s in precondition: %[4]s, %[3]s in object meta: %[5]s", where, revisions.PathOf(key), field, want, got))
}
